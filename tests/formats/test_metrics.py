"""The metrics endpoint, read by the parsers of Prometheus' own Python client, by promtool and by a Prometheus that scrapes it."""
import json
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as open_parser

OPEN = "application/openmetrics-text; version=1.0.0"


def address_in(stream):
    """Of the line that the program prints on standard error."""
    for line in stream:
        if found := re.search(rb"metrics at (http://\S+)", line):
            return found.group(1).decode()
    raise AssertionError("no address was printed")


def scrape(address, accept="text/plain"):
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": accept})) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples_of(text, parse):
    return {(sample.name, sample.labels.get("gpu")): sample.value for family in parse(text) for sample in family.samples}


def test_run_serves_what_it_records(vramscope, fakegpu, devices, tmp_path):
    command = [vramscope, "run", "-q", "--metrics", ":0", "-o", tmp_path / "out", "--", fakegpu / "cuda_program", "dlsym", "hold", "500"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=devices)
    try:
        address = address_in(process.stderr)
        assert address.startswith("http://127.0.0.1:")
        assert process.stdout.readline() == b"holding\n"
        kind, text = scrape(address)
        assert kind.startswith("text/plain; version=0.0.4")
        plain = samples_of(text, parser.text_string_to_metric_families)
        kind, text_open = scrape(address, OPEN)
        assert kind.startswith(OPEN) and text_open.endswith("# EOF\n")
        opened = samples_of(text_open, open_parser.text_string_to_metric_families)
        # Recorded processes of others on this machine have no GPU, and come and go between the two.
        assert {key for key in plain if key[1] != "none"} == {key for key in opened if key[1] != "none"}
        for figures in (plain, opened):
            assert figures["vramscope_live_bytes", "0"] == 500 << 20
            assert figures["vramscope_out_of_memory_total", "0"] == 0
            assert figures["vramscope_device_used_bytes", "0"] >= 500 << 20
            assert figures["vramscope_device_total_bytes", "1"] > 0
        with pytest.raises(urllib.error.HTTPError):
            scrape(address.replace("/metrics", "/secret"))
    finally:
        process.communicate(b"")
    assert process.returncode == 0


def test_top_serves_a_machine_without_any_recorded_process(vramscope, devices):
    process = subprocess.Popen([vramscope, "top", "--metrics", "127.0.0.1:0"], stderr=subprocess.PIPE, env=devices)
    try:
        figures = samples_of(scrape(address_in(process.stderr))[1], parser.text_string_to_metric_families)
        assert figures["vramscope_device_total_bytes", "0"] > 0 and figures["vramscope_device_total_bytes", "1"] > 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0


@pytest.fixture
def prometheus(root, missing):
    """prometheus("promtool") -> the program of Debian's package."""
    def find(name):
        path = root / ".cache/prometheus/usr/bin" / name
        return str(path) if path.exists() else shutil.which(name) or missing(name)
    return find


CONFIG = """
global: {{scrape_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: vramscope, static_configs: [{{targets: ["{target}"]}}]}}]
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_promtool_has_no_objections(vramscope, run, devices, prometheus, root):
    text = run([vramscope, "top", "--once", "--metrics", ":0"], env=devices).stdout
    done = subprocess.run([prometheus("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "SUCCESS" in run([prometheus("promtool"), "check", "rules", root / "examples/metrics/alerts.yml"]).stdout


def test_prometheus_scrapes_the_endpoint(vramscope, devices, prometheus, root, wait_until, tmp_path):
    server = None
    top = subprocess.Popen([vramscope, "top", "--metrics", ":0"], stderr=subprocess.PIPE, env=devices)
    try:
        target = address_in(top.stderr).split("/")[2]
        (tmp_path / "prometheus.yml").write_text(CONFIG.format(rules=root / "examples/metrics/alerts.yml", target=target))
        address = f"127.0.0.1:{free_port()}"
        with open(tmp_path / "log", "w") as log:
            server = subprocess.Popen([prometheus("prometheus"), f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
                                       f"--web.listen-address={address}"], stdout=log, stderr=log)

        def scraped():
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                with urllib.request.urlopen(f"http://{address}/api/v1/query?query=vramscope_device_total_bytes") as answer:
                    return json.load(answer)["data"]["result"]
            except urllib.error.URLError:
                return None

        found = {one["metric"]["gpu"]: float(one["value"][1]) for one in wait_until(scraped, "Prometheus has scraped the endpoint")}
        served = samples_of(scrape(f"http://{target}/metrics")[1], parser.text_string_to_metric_families)
        assert found == {gpu: served["vramscope_device_total_bytes", gpu] for gpu in ("0", "1")}
    finally:
        for process in (server, top):
            if process is not None:
                process.terminate()
                process.communicate()


def test_a_foreign_page_cannot_read_them(vramscope, devices):
    """One that points its own name at this machine: the browser sends that name."""
    process = subprocess.Popen([vramscope, "top", "--metrics", ":0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=devices)
    try:
        address = address_in(process.stderr)
        port = address.split(":")[2].split("/")[0]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "localhost"):
            with urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host})) as answer:
                assert answer.status == 200
        for host in (f"foreign.example:{port}", f"127.0.0.1.foreign.example:{port}", "127.0.0.1@foreign.example", "foreign.example", ""):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host}))
            assert refused.value.code in (400, 403), host
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def test_top_prints_metrics_once(vramscope, run, devices):
    assert "# TYPE vramscope_device_total_bytes gauge" in run([vramscope, "top", "--once", "--metrics", ":0"], env=devices).stdout


@pytest.mark.parametrize("address", ["here", ":", ":99999", "127.0.0.1:http"])
def test_wrong_addresses(vramscope, run, address):
    done = run([vramscope, "top", "--metrics", address], code=2)
    assert "--metrics" in done.stderr and done.stderr.count("\n") == 1


def test_dashboard_and_alerts_name_metrics_that_exist(root):
    known = set(re.findall(r'"(vramscope_[a-z_]+)"', (root / "src/cli/top/metrics.cpp").read_text())) | {"vramscope_out_of_memory_total"}
    board = json.loads((root / "examples/metrics/grafana.json").read_text())
    shown = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"vramscope_[a-z_]+", target["expr"])}
    alerted = set(re.findall(r"vramscope_[a-z_]+", (root / "examples/metrics/alerts.yml").read_text()))
    assert alerted <= known and shown == known - {"vramscope_out_of_memory"}
