#include "app/commands.hpp"

#include "app/configuration.hpp"
#include "app/doctor.hpp"
#include "app/help.hpp"

namespace thalweg::app {

void add_commands(CLI::App& app) {
  app.description("Thalweg: inference for DeepSeek-V4.1-Flash");
  app.name("thalweg");
  set_help_layout(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", "thalweg 0.1.0");
  add_generate(app);
  add_chat(app);
  add_serve(app);
  add_doctor(app);
  add_plan(app);
  add_bench(app);
  add_eval(app);
  CLI::App* inspect = app.add_subcommand("inspect", "Check one part of the engine: a file in, a file out");
  inspect->require_subcommand(1);
  add_inspect_checkpoint(*inspect);
  add_inspect_parse(*inspect);
  add_inspect_logits(*inspect);
  add_inspect_greedy(*inspect);
  add_inspect_draft(*inspect);
  add_inspect_tokens(*inspect);
  add_inspect_render(*inspect);
  add_inspect_schema(*inspect);
  add_inspect_flops(*inspect);
  add_inspect_verify_plan(*inspect);
  add_configuration(app);  // last: it gives every command above its --config
}

}  // namespace thalweg::app
