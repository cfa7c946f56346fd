"""The tab in TensorBoard, through TensorBoard's own application: it is listed, its module and pages are served under TensorBoard's policy."""
import base64
import hashlib
import os
import re
import subprocess

import pytest


@pytest.fixture
def client(build, tmp_path, monkeypatch):
    from tensorboard.backend import application
    from tensorboard.plugins import base_plugin
    from vramscope.tensorboard_plugin import VramscopePlugin
    from werkzeug.test import Client

    monkeypatch.setenv("VRAMSCOPE_BUILD", str(build))
    logs = tmp_path / "logs"
    (logs / "today").mkdir(parents=True)
    (tmp_path / "outside.vram").write_text("secret")
    subprocess.run([build / "tracegen", "clean", logs / "today/run.vram", "seed=7"], check=True, capture_output=True)
    return Client(application.TensorBoardWSGI([VramscopePlugin(base_plugin.TBContext(logdir=str(logs)))]))


def test_the_tab(client):
    listed = client.get("/data/plugins_listing").get_json()["vramscope"]
    assert listed["enabled"] and listed["tab_name"] == "Memory"
    assert listed["loading_mechanism"]["module_path"].endswith("/vramscope/index.js")
    module = client.get("/data/plugin/vramscope/index.js")
    assert module.mimetype == "application/javascript" and "export async function render" in module.text
    assert client.get("/data/plugin/vramscope/traces").get_json() == ["today/run.vram"]


def test_the_report(client):
    page = client.get("/data/plugin/vramscope/report", query_string={"trace": "today/run.vram"})
    if page.status_code == 500 and "user interface" in page.text:
        pytest.skip("the program was built without its page")
    assert page.status_code == 200 and "<title>vramscope</title>" in page.text
    allowed = page.headers["Content-Security-Policy"]
    scripts = [body for head, body in re.findall(r"<script\b([^>]*)>(.*?)</script>", page.text, re.DOTALL) if "text/plain" not in head]
    assert scripts
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in allowed


@pytest.mark.parametrize("name", ["../outside.vram", "today/../../outside.vram", "", "/etc/passwd"])
def test_nothing_outside_the_log_directory(client, name):
    assert client.get("/data/plugin/vramscope/report", query_string={"trace": name}).status_code == 404


def test_links_and_what_is_gone(client, tmp_path):
    """A link that leads nowhere keeps no other tab from working, and one that leads to another trace shows nothing of it."""
    other = tmp_path / "other.vram"
    other.write_bytes((tmp_path / "logs/today/run.vram").read_bytes())
    (tmp_path / "logs/gone.vram").symlink_to(tmp_path / "nowhere.vram")
    (tmp_path / "logs/other.vram").symlink_to(other)
    os.mkfifo(tmp_path / "logs/pipe.vram")
    assert client.get("/data/plugins_listing").get_json()["vramscope"]["enabled"]
    assert client.get("/data/plugin/vramscope/traces").get_json() == ["today/run.vram"]
    for name in ("gone.vram", "other.vram", "pipe.vram"):
        assert client.get("/data/plugin/vramscope/report", query_string={"trace": name}).status_code == 404


def test_nothing_without_a_log_directory(client, tmp_path, monkeypatch):
    """--logdir_spec: the current folder is not what was asked for."""
    from tensorboard.plugins import base_plugin
    from vramscope.tensorboard_plugin import VramscopePlugin
    monkeypatch.chdir(tmp_path / "logs")
    assert not VramscopePlugin(base_plugin.TBContext(logdir="")).is_active()
