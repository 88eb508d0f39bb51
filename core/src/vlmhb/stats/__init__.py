"""How sure a figure is: intervals of means whose rows are not independent."""
