"""One page of HTML about a box: complete in itself, readable on a phone, light and dark, without a script."""
