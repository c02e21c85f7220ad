"""Variables: one for every option, and nothing of ours that is misspelt goes unnoticed."""

import pytest

from puma.config.environment import settings_from_environment
from puma.config.sections import OPTIONS


def problems(**variables):
    return [str(problem) for problem in settings_from_environment(variables)[1]]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_every_option_has_a_variable(option):
    (setting,), wrong = settings_from_environment({option.variable: "7"})
    assert (setting.option, setting.value, setting.written) == (option, "7", option.variable)
    assert not wrong


def test_foreign_and_empty_variables_are_left_alone():
    assert settings_from_environment({"PATH": "x", "PUMAS": "1", "PUMA_PORT": "", "PUMA_HOME": "/x"}) == ([], [])


def test_unknown_variables_are_refused():
    assert problems(PUMA_THREAD="2", PUMA_XYZZY="1") == [
        "PUMA_THREAD = '2' (environment): no such variable; did you mean PUMA_THREADS?",
        "PUMA_XYZZY = '1' (environment): no such variable",
    ]


def test_what_kubernetes_sets_for_a_service_called_puma():
    links = {
        "PUMA_SERVICE_HOST": "10.0.0.1",
        "PUMA_SERVICE_PORT": "8000",
        "PUMA_SERVICE_PORT_HTTP": "8000",
        "PUMA_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "PUMA_PORT_8000_TCP_PROTO": "tcp",
        "PUMA_PORT_8000_TCP_PORT": "8000",
        "PUMA_PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    assert settings_from_environment(links) == ([], [])
    (problem,) = problems(PUMA_PORT="tcp://10.0.0.1:8000")
    assert "enableServiceLinks: false" in problem
