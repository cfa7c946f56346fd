// What another verb says about the trace of one process, and its page for a browser. Each is a child of its own: the screen never
// waits for it, and it ends with `top`.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vramscope::cli::top {

class Look {
 public:
  Look() = default;
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  // Starts `vramscope VERB TRACE`; what it said before is forgotten.
  void ask(const std::string& verb, const std::string& trace);
  void serve(const std::string& trace);  // keeps running until the next one, or the end
  // The lines that have come so far, without colour; empty until the first.
  std::vector<std::string> lines() const;
  std::string address() const;  // of the page; "" until the server said it

 private:
  struct Heard {
    std::mutex mutex;
    std::string text;
  };
  struct Child {
    pid_t pid = -1;
    std::shared_ptr<Heard> heard;
  };
  static Child start(std::vector<std::string> words);
  static void end(Child& child);
  static std::string text_of(const Child& child);

  Child verb_, server_;
};

}  // namespace vramscope::cli::top
