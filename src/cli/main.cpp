#include "cli/verb.h"

int main(int argc, char** argv) { return vramscope::cli::run_program(argc, argv); }
