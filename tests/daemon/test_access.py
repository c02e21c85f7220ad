"""The API key: asked for when one is configured, wherever it was configured."""

import pytest

from puma.daemon.access import carries
from tests.daemon.daemons import RunningDaemon

KEY = "sk-of-flag-é"


@pytest.fixture(scope="module")
def daemon():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUMA_API_KEY", "sk-of-environment")
        with RunningDaemon("--api-key", KEY) as running:
            yield running


def status(daemon, path, header=None):
    headers = {} if header is None else {"Authorization": header.encode()}
    with daemon.client() as client:
        return client.get(path, headers=headers)


def test_the_flag_decides_who_gets_in(daemon):
    assert status(daemon, "/v1/models", f"Bearer {KEY}").status_code == 200
    for header in (None, "Bearer", "Bearer sk-of-environment", f"Basic {KEY}", KEY, f"Bearer {KEY}x"):
        response = status(daemon, "/v1/models", header)
        assert response.status_code == 401, header
        assert response.json()["error"]["code"] == "invalid_api_key"
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert KEY not in response.text


def test_health_is_open_and_everything_else_is_not(daemon):
    assert status(daemon, "/health").status_code == 200
    for path in ("/v1/chat/completions", "/no/such/route", "/health/", "/"):
        assert status(daemon, path).status_code == 401


def test_the_scheme_may_be_written_in_any_case():
    assert carries("bearer  key ", "key")
    assert not carries("bearer key", "Key")
