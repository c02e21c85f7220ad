"""Models, health, and what is on no route."""

import pytest


def test_models(client):
    body = client.get("/v1/models").json()
    assert body["object"] == "list"
    (model,) = body["data"]
    assert model["id"] == "smollm2:135m"
    assert model["object"] == "model"
    assert isinstance(model["created"], int)
    assert client.get("/v1/models/smollm2:135m").json() == model
    assert client.get("/v1/models/smollm2%3A135m").json() == model


@pytest.mark.parametrize("name", ["other", "a/b/c", "..%2f..%2fetc%2fpasswd", "x" * 5000, "%00"])
def test_unknown_model(client, name):
    response = client.get(f"/v1/models/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert len(response.text) < 1000


def test_unknown_model_in_a_request(chat, complete):
    for response in (chat(model="gpt-4o"), complete(model="gpt-4o"), chat(model=""), chat(model="x" * 5000)):
        assert response.status_code == 404
        error = response.json()["error"]
        assert error["code"] == "model_not_found"
        assert error["param"] == "model"
        assert len(error["message"]) < 300
    assert chat(model="smollm2:135m").status_code == 200


def test_health(client):
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


def test_head(client):
    for path in ("/health", "/v1/models"):
        response = client.head(path)
        assert response.status_code == 200
        assert response.content == b""
    assert client.head("/v1/chat/completions").status_code == 405


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("POST", "/v1", 404),
        ("GET", "//v1/models", 404),
        ("GET", "/v1/models/", 404),
        ("GET", "/static/x", 404),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/health", 405),
    ],
)
def test_errors_have_one_shape(client, method, path, status):
    response = client.request(method, path)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]
    if status == 405:
        assert response.headers["allow"]
