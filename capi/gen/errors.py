"""Error of the generator: says the problem and the allowed values. The reader of the file puts FILE:LINE in front."""


class TableError(Exception):
    pass
