"""Finding plugins by their entry points, importing them when they are asked for, and saying what is wrong with them."""
