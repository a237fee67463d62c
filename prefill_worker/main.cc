#include "common/worker/server/worker_main.h"

int main(int argc, char** argv) {
  return penstock::RunWorker("prefill", {.prefill = true}, argc, argv);
}
