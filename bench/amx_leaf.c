// Some virtual machines have AMX but hide CPUID leaf 0x1D, which describes its tiles. Then oneDNN
// fails with an illegal instruction, and with it PyTorch and CTranslate2. This library emulates the
// leaf if it is loaded before such a program, so that its full speed can be measured:
//
//   gcc -O2 -shared -fPIC bench/amx_leaf.c -o amx_leaf.so
//   LD_PRELOAD=$PWD/amx_leaf.so python torch_speed.py tiny
//
// On processors that support it, CPUID is set to fault, and the signal handler returns the result.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kSetCpuid = 0x1012 };  // ARCH_SET_CPUID of <asm/prctl.h>: with 0 the instruction faults
enum { kTiles = 0x1d, kProducts = 0x1e };

static void answer(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number, (void)info;
  greg_t* const r = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uint8_t* const code = (const uint8_t*)r[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0xa2) {  // another fault, which belongs to the program
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  const uint32_t leaf = (uint32_t)r[REG_RAX], part = (uint32_t)r[REG_RCX];
  uint32_t a, b, c, d;
  syscall(SYS_arch_prctl, kSetCpuid, 1);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
  syscall(SYS_arch_prctl, kSetCpuid, 0);
  if (leaf == 0 && a < kProducts) a = kProducts;  // the highest leaf
  if (leaf == kTiles || leaf == kProducts) a = b = c = d = 0;
  if (leaf == kTiles && part == 0) a = 1;  // one palette: 8 tiles of 16 rows of 64 bytes
  if (leaf == kTiles && part == 1) a = 8192 | 1024 << 16, b = 64 | 8 << 16, c = 16;
  if (leaf == kProducts && part == 0) b = 16 | 64 << 8;
  r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
  r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
  unsetenv("LD_PRELOAD");  // compilers that the program starts handle faults themselves
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  if (syscall(SYS_arch_prctl, kSetCpuid, 0)) perror("amx_leaf: CPUID cannot fault here");
}
