"""--otlp against a local collector that parses what it receives with OpenTelemetry's own messages, which refuse unknown members."""
import contextlib
import http.server
import os
import queue
import signal
import socket
import subprocess
import threading

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics

GUARD_S = 600


@pytest.fixture
def collector():
    """(its address, a queue of what it received, the status that it answers with as a list of one)."""
    received, status = queue.Queue(), [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = json_format.Parse(body, metrics.ExportMetricsServiceRequest())
            received.put((self.path, self.headers["Content-Type"], request))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received, status
    server.shutdown()
    server.server_close()


def points(request):
    """(metric, gpu) -> value"""
    out = {}
    for resource in request.resource_metrics:
        assert {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"] == "vramscope"
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            assert metric.description and (metric.unit == "By") == metric.name.endswith("_bytes")
            if metric.name == "vramscope_out_of_memory":
                assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
            for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
                assert 0 < point.start_time_unix_nano <= point.time_unix_nano or not metric.HasField("sum") and point.time_unix_nano > 0
                out[metric.name, next(one.value.string_value for one in point.attributes if one.key == "gpu")] = point.as_double
    return out


def test_run_sends_what_it_records(vramscope, fakegpu, devices, collector, tmp_path):
    address, received, _ = collector
    command = [vramscope, "run", "-q", "--otlp", address, "-o", tmp_path / "out", "--", fakegpu / "cuda_program", "dlsym", "hold", "500"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**devices, "OTEL_METRIC_EXPORT_INTERVAL": "50", "OTEL_EXPORTER_OTLP_TIMEOUT": str(1000 * GUARD_S)})
    try:
        assert process.stdout.readline() == b"holding\n"
        figures = {}
        while figures.get(("vramscope_live_bytes", "0")) != 500 << 20:      # a request may have been under way before
            path, kind, request = received.get(timeout=GUARD_S)
            figures = points(request)
        assert (path, kind) == ("/v1/metrics", "application/json")
        assert figures["vramscope_out_of_memory", "0"] == 0
        assert figures["vramscope_device_used_bytes", "0"] >= 500 << 20 and figures["vramscope_device_total_bytes", "1"] > 0
    finally:
        _, errors = process.communicate(b"")
    assert process.returncode == 0 and errors == b""


def test_top_sends_to_a_path_and_reports_refusals_once(vramscope, devices, collector):
    address, received, status = collector
    status[0] = 503
    process = subprocess.Popen([vramscope, "top", "--otlp", address + "/other/path"], stderr=subprocess.PIPE,
                               env={**devices, "OTEL_METRIC_EXPORT_INTERVAL": "10", "OTEL_EXPORTER_OTLP_TIMEOUT": str(1000 * GUARD_S)})
    try:
        for _ in range(3):
            path, _, request = received.get(timeout=GUARD_S)
        assert path == "/other/path" and points(request)["vramscope_device_total_bytes", "1"] > 0
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert errors.decode().splitlines() == [f"vramscope: no metrics reach {address}/other/path: the server answered 503 Service Unavailable; trying again"]


def test_a_collector_that_is_gone_changes_nothing_for_the_command(vramscope, run, tmp_path):
    done = run([vramscope, "run", "-q", "--otlp", "http://127.0.0.1:1", "-o", tmp_path / "out", "--", "sh", "-c", "exit 7"], code=7)
    assert done.stderr.count("no metrics reach http://127.0.0.1:1: Connection refused") == 1


def test_a_collector_that_answers_a_byte_at_a_time_does_not_hold_up_the_command(vramscope, run, tmp_path):
    """Each byte comes in time, the whole answer never does."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def answer():
        while not over.is_set():
            peer, _ = listening.accept()
            with peer, contextlib.suppress(OSError):
                while not over.wait(0.05):
                    peer.sendall(b"H")

    threading.Thread(target=answer, daemon=True).start()
    try:
        done = run([vramscope, "run", "-q", "--otlp", f"http://127.0.0.1:{listening.getsockname()[1]}", "-o", tmp_path / "out", "--",
                    "sh", "-c", "exit 7"], code=7, timeout=100, env={**os.environ, "OTEL_EXPORTER_OTLP_TIMEOUT": "500"})
    finally:
        over.set()
        listening.close()
    assert "no answer" in done.stderr


@pytest.mark.parametrize("address", ["here", "http://", "https://host:4318", "http://host:port", "http://host:99999", "http://user@host", "http://a b"])
def test_wrong_addresses(vramscope, run, address):
    done = run([vramscope, "top", "--otlp", address], code=2)
    assert "--otlp" in done.stderr and done.stderr.count("\n") == 1
    assert ("OpenTelemetry Collector" in done.stderr) == address.startswith("https")
    run([vramscope, "run", "--otlp", address, "--", "true"], code=2)
