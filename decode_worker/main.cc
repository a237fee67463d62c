#include "common/worker/server/worker_main.h"

int main(int argc, char** argv) {
  return penstock::RunWorker("decode", {.decode = true}, argc, argv);
}
