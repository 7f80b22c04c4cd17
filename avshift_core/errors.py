"""What an analyst can cause. Pages show the text as it is; the CLI prints it and exits with 2."""


class AVShiftError(Exception):
    """One clear sentence: the value that is wrong, what is needed, what to do."""


class TableError(AVShiftError):
    """A table cannot be read, lacks a column, or holds values that no analysis can use."""


class CohortError(AVShiftError):
    """A cohort, or a pair of them, is too small, too uneven or not comparable."""


class LogError(AVShiftError):
    """A log cannot be read as scenarios; names the file and, where there is one, the row."""


class CorpusError(AVShiftError):
    """A corpus cannot be opened, read or written; nothing was changed."""


class ModelError(AVShiftError):
    """A model cannot be read, trained or used on these scenarios; names the file, the batch or the scenario."""


class ConfigError(AVShiftError):
    """A setting is outside its range."""


class ClusterError(AVShiftError):
    """A cluster cannot be used, or was lost in the middle; what was finished is kept."""
