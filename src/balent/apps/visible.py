"""Text for a terminal. Names of files may contain control characters, which a terminal would obey: they are shown."""

# ESC is shown as ␛. Codes above 127, half characters (bytes of names in another encoding) and marks that turn the
# direction of writing have no sign of their own.
SIGNS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
SIGNS |= dict.fromkeys(
    [*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD
)


def visible(text: str) -> str:
    """The same text, with a sign in place of each control character."""
    return text.translate(SIGNS)
