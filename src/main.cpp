// The `thalweg` command: turns what went wrong into one line and an exit code.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <new>

#include "app/commands.hpp"
#include "base/error.hpp"

namespace {

int report(const char* message, thalweg::Fault fault) {
  std::fprintf(stderr, "thalweg: %s\n", message);
  return static_cast<int>(fault);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  try {
    thalweg::app::add_commands(app);
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(e.what(), thalweg::Fault::usage);
  } catch (const thalweg::Error& e) {
    return report(e.what(), e.fault());
  } catch (const std::bad_alloc&) {
    return report("out of memory", thalweg::Fault::work);
  } catch (const std::exception& e) {
    return report(e.what(), thalweg::Fault::work);
  }
}
