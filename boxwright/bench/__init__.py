"""A benchmark of a box: results of the engine's own tool in, figures, comparisons and pictures out."""
