"""Changes of colour and crops, one pixel at a time, as their definitions say."""

import colorsys
import math

import numpy as np


def gray(pixel):
    red, green, blue = pixel
    return 0.299 * red + 0.587 * green + 0.114 * blue


def clipped(pixel):
    return [min(1.0, max(0.0, value)) for value in pixel]


def brightness(image, factor):
    """Every value times the factor."""
    return each(image, lambda pixel: clipped([factor * value for value in pixel]))


def contrast(image, factor):
    """Away from the mean grey of the image, or towards it."""
    mean = float(np.mean([gray(pixel) for pixel in image.reshape(3, -1).T]))
    return each(image, lambda pixel: clipped([mean + factor * (value - mean) for value in pixel]))


def saturation(image, factor):
    """Away from the grey of the same pixel, or towards it."""
    return each(image, lambda pixel: clipped([gray(pixel) + factor * (value - gray(pixel)) for value in pixel]))


def hue(image, turn):
    """To hue, saturation and value, around the wheel, and back: by Python's own colorsys."""

    def turned(pixel):
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        return colorsys.hsv_to_rgb((h + turn) % 1.0, s, v)

    return each(image, turned)


def each(image, change):
    """The image [3, height, width] with each pixel changed."""
    out = np.empty_like(image)
    for at in np.ndindex(image.shape[1:]):
        out[(slice(None), *at)] = change([float(value) for value in image[(slice(None), *at)]])
    return out


def crop(image, left, top, width, height, size):
    """The box (shares of the image) as size × size pixels, each the bilinear value at its centre."""
    channels, rows, columns = image.shape
    out = np.empty((channels, size, size))
    for i, j in np.ndindex(size, size):
        y = (top + height * (i + 0.5) / size) * rows - 0.5
        x = (left + width * (j + 0.5) / size) * columns - 0.5
        out[:, i, j] = bilinear(image, min(max(y, 0), rows - 1), min(max(x, 0), columns - 1))
    return out


def bilinear(image, y, x):
    i, j = math.floor(y), math.floor(x)
    k, m = min(i + 1, image.shape[1] - 1), min(j + 1, image.shape[2] - 1)
    above = (1 - (x - j)) * image[:, i, j] + (x - j) * image[:, i, m]
    below = (1 - (x - j)) * image[:, k, j] + (x - j) * image[:, k, m]
    return (1 - (y - i)) * above + (y - i) * below
