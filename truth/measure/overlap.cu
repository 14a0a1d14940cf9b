// SPDX-License-Identifier: Apache-2.0
// overlap.cu - blocks that hold multiprocessors and copy at a given rate, as a collective's channels do.  overlap.py builds it.

#include <cuda_runtime.h>

#define THREADS 512
#define PIECE 65536 // bytes copied between two looks at the clock

__device__ static unsigned long long now_ns() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Until *stop is set, or for limit_ns; period_ns apart, 0: as fast as it goes, below 0: no copies, only waiting.
__global__ void __launch_bounds__(THREADS, 1)
    channels(const uint4 *__restrict__ from, uint4 *__restrict__ to, size_t piece_count, long long period_ns, unsigned long long limit_ns,
             volatile int *stop, unsigned long long *copied) {
    __shared__ int is_over;
    const unsigned long long began = now_ns();
    const size_t words = PIECE / sizeof(uint4);
    unsigned long long n = 0;
    for (;;) {
        if (threadIdx.x == 0) {
            is_over = *stop || now_ns() - began > limit_ns;
            /* The flag lies in the device's own memory, and is not asked for without a pause: reads that go to the
             * host, or never cease, slow the whole device down. */
            while (!is_over && period_ns > 0 && now_ns() < began + n * period_ns) {
                __nanosleep(200);
                is_over = *stop || now_ns() - began > limit_ns;
            }
            if (period_ns < 0)
                __nanosleep(500);
        }
        __syncthreads();
        if (is_over)
            break;
        if (period_ns >= 0) {
            const size_t at = (n * gridDim.x + blockIdx.x) % piece_count * words;
            uint4 kept[PIECE / sizeof(uint4) / THREADS]; // all loads in flight at once
#pragma unroll
            for (size_t i = 0; i < PIECE / sizeof(uint4) / THREADS; i++)
                kept[i] = from[at + i * THREADS + threadIdx.x];
#pragma unroll
            for (size_t i = 0; i < PIECE / sizeof(uint4) / THREADS; i++)
                to[at + i * THREADS + threadIdx.x] = kept[i];
            n++;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        copied[blockIdx.x] = n * PIECE;
}

extern "C" int channels_start(int blocks, int shared_bytes, const void *from, void *to, size_t bytes, long long period_ns,
                              unsigned long long limit_ns, int *stop, unsigned long long *copied, cudaStream_t stream) {
    cudaFuncSetAttribute(channels, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    channels<<<blocks, THREADS, shared_bytes, stream>>>((const uint4 *)from, (uint4 *)to, bytes / PIECE, period_ns, limit_ns,
                                                        stop, copied);
    return (int)cudaGetLastError();
}
