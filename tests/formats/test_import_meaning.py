"""Imported profiles: what their source does not say is unknown, not a guess."""


def test_a_log_without_a_limit_has_no_figure_for_what_was_free(imported, answer, vramscope, run, tmp_path):
    """An RMM log has neither the limit, nor the pool's regions, nor the card's size; what is live is no capacity."""
    file = tmp_path / "rmm.csv"
    file.write_text("Thread,Time,Action,Pointer,Size,Stream\n"
                    "7,00:00:01.000000,allocate,0x7f0000000000,2048,0x0\n7,00:00:02.000000,allocate failure,(nil),100000000000,0x0\n")
    trace = imported(file)
    said = run([vramscope, "oom", trace]).stdout
    assert "how much was free is not known" in said and "short of fitting" not in said
    assert all(word not in said for word in ("0 B of the", "0 B was free", "could take", "that the pool held"))
    event = answer("oom", trace)["events"][0]
    assert event["verdict"] == "unknown" and {event[key] for key in ("free", "largest_free", "short_by", "regions", "limit")} == {0}
    assert event["live"] == 2048 and not any(cause["holds"] or cause["would_fit"] == "no" for cause in event["causes"] if cause["cause"] != "spike")
    finding = next(found for found in answer("summary", trace)["findings"]["findings"] if found["id"] == "oom")
    assert finding["at_stake"] is None and "95,367" not in run([vramscope, "summary", trace]).stdout.replace(finding["title"], "")
