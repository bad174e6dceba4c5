// The `thalweg` command.
#include "app/command_line.hpp"

int main(int argc, char** argv) {
  return thalweg::app::run_command_line(argc, argv);
}
