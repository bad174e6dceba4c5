// `thalweg serve` as a user starts and ends it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "serve/event_stream.hpp"
#include "serve/http_client.hpp"
#include "support/program.hpp"

namespace thalweg::testing {
namespace {

/// The program running with its messages at hand.
class ServeProgram {
 public:
  explicit ServeProgram(const std::vector<std::string>& more = {}) {
    int pipe[2];
    if (::pipe(pipe) != 0) throw std::runtime_error("cannot make a pipe");
    std::vector<std::string> arguments = {"thalweg", "serve", "--port", "0", "--threads", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe[1], STDERR_FILENO);
      ::close(pipe[0]);
      ::close(pipe[1]);
      ::execv(THALWEG_BINARY, argv.data());
      ::_exit(127);
    }
    ::close(pipe[1]);
    messages_ = ::fdopen(pipe[0], "r");
  }
  ~ServeProgram() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::fclose(messages_);
  }

  /// Reads messages up to the one with `text` in it; an empty line if there is none.
  std::string wait_for(const std::string& text) {
    char line[4096];
    while (std::fgets(line, sizeof line, messages_) != nullptr) {
      if (std::string(line).find(text) != std::string::npos) return line;
    }
    return "";
  }
  std::uint16_t port() {
    const std::string line = wait_for("listening on");
    return static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
  }
  void signal(int number) { ::kill(child_, number); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(child_, 0), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t child_ = 0;
  std::FILE* messages_ = nullptr;
};

std::string body(const std::string& more) {
  return R"({"model": "deepseek-flash", "messages": [{"role": "user", "content": "The river"}])" + more + "}";
}

TEST(ServeProgram, AnswersUntilItIsAskedToStop) {
  ServeProgram program;
  const std::uint16_t port = program.port();
  ASSERT_NE(program.wait_for("ready"), "");
  const ClientReply reply = HttpClient(port).post("/v1/chat/completions", body(R"(, "max_tokens": 4)"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  HttpClient streaming(port);
  streaming.send(
      HttpClient::request("POST", "/v1/chat/completions", body(R"(, "max_tokens": 40, "stream": true)")));
  streaming.read_until("\r\n\r\n");
  program.signal(SIGTERM);
  EXPECT_TRUE(streaming.read_until("data: [DONE]"));
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, CutsAnswersThatOutlastTheDrain) {
  ServeProgram program({"--drain-seconds", "0.1"});
  const std::uint16_t port = program.port();
  ASSERT_NE(program.wait_for("ready"), "");
  HttpClient streaming(port);
  streaming.send(HttpClient::request("POST", "/v1/completions",
                                     R"({"model": "deepseek-flash", "prompt": "The", "max_tokens": 4000,
                                         "ignore_eos": true, "stream": true})"));
  streaming.read_until("\"text\"");
  program.signal(SIGTERM);
  EXPECT_TRUE(streaming.read_until("insufficient_system_resource"));
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, AnAddressThatCannotBeHadIsACommandLineFault) {
  ServeProgram program;
  const std::string port = std::to_string(program.port());
  const ProgramResult taken = run_program({"serve", "--port", port});
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_NE(taken.messages.find("--port"), std::string::npos) << taken.messages;
  for (const std::string host : {"nowhere", "203.0.113.7"}) {
    const ProgramResult bad = run_program({"serve", "--host", host, "--port", "0"});
    EXPECT_EQ(bad.exit_code, 2) << host;
    EXPECT_NE(bad.messages.find("--host"), std::string::npos) << bad.messages;
  }
  EXPECT_EQ(run_program({"serve", "--port", "70000"}).exit_code, 2);
  EXPECT_EQ(run_program({"serve", "--port", "0", "--api-key-file", "/no/such/file"}).exit_code, 3);
  EXPECT_EQ(run_program({"serve", "--port", "0", "--model", "/no/such/model"}).exit_code, 3);
}

}  // namespace
}  // namespace thalweg::testing
