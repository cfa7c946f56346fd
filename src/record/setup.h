// Turns recording in this process on and off. The spool is created at the first event.
#pragma once

namespace vramscope::record {

enum class Setup { recording, off };

// Creates the spool of this process unless it exists. Safe from several threads and in a forked child.
Setup set_up();
// Nothing will be recorded in this process from now on.
void turn_off();
void turn_on();
// Ends a recording started by a late attach: the collector sees the process as finished. Recording can start again.
void end_recording();
bool is_off();

}  // namespace vramscope::record
