from tests.models.formats.gguf_writer import write_gguf


def test_x():
    assert write_gguf
