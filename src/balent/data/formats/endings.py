"""What names of image files end in. No torch here: projects list folders without it."""

ENDINGS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pnm"),
    *(".avif", ".heic", ".heif", ".jp2", ".tga", ".pcx", ".ico", ".dds", ".xbm"),
)
