import logging

from datadefense.cli.warnings_shown import warnings_shown


def test_warnings_are_lines_on_standard_error(capsys):
    logger = logging.getLogger("datadefense.runs.anything")
    with warnings_shown("datadefense.runs", "datadefense.defense_sets"):
        logger.warning("%s is [odd]", "this")
        logger.info("not this")
        logging.getLogger("datadefense.core.gate").warning("nor this")
    logger.warning("nor what comes after")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "warning: this is [odd]\n")
