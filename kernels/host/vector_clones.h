#pragma once

// Compiles a plain loop for several vector widths; the widest that the machine
// has is chosen when the program loads. Contraction is off and such loops add
// in lanes of a fixed number, so every version gives the same bits.
//
// Put it before the definition of a function that is not inline. The loader
// chooses before a sanitizer is ready, so sanitizer builds have one version.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PENSTOCK_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PENSTOCK_VECTOR_CLONES
#endif
