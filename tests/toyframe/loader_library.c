void wait_for_an_allocation(void);
__attribute__((constructor)) static void on_load(void) { wait_for_an_allocation(); }
