"""What stops the generator: text that says what is wrong and what is allowed. Whoever reads a file puts FILE:LINE before it."""


class TableError(Exception):
    pass
