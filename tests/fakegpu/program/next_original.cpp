#define PUBLIC extern "C" __attribute__((visibility("default")))
PUBLIC int victim_value() { return 7; }
PUBLIC int cuVictim() { return 9; }
