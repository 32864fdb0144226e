// Put the barrier of a kernel where it belongs.
//
// A kernel adds the losses of eight rows with eight threads. Each thread stores the loss of one row in shared
// memory, as sum[thread]. Three rounds follow. In round 1, threads 0 to 3 add the numbers of threads 4 to 7 to
// their own. In round 2, threads 0 and 1 add those of threads 2 and 3. In round 3, thread 0 adds that of thread 1.
//
// The kernel is PTX, the language that nvcc compiles kernels to; the comments show it in C++. The instruction
// "bar.sync 0;" is __syncthreads(): no thread goes on before all threads have reached it.
//
// The kernel needs only one bar.sync, and a thread may pass it several times. But it is in the wrong place: if the
// threads run in the order 0, 1, ..., 7 to the next bar.sync, the sum is wrong; in the order 7, 6, ..., 0 it is
// right. Move this line, and change no other. The check runs both orders, and looks for races.
//
// The question: in each round, which number does thread 0 read, which thread stored it, and in which round?
//
// Given:
//     beginning   puts the loss of row `thread` into %own, and the address of sum[thread] into %place
//     end         stores sum[0] as the result
#include "given.hpp"

std::string kernel() {
    return beginning + R"(
        st.shared.f32 [%place], %own;        // sum[thread] = own;
        bar.sync      0;                     // __syncthreads();
        mov.u32       %half, 4;              // half = 4;
    round:                                   // do {
        setp.ge.u32   %idle, %thread, %half;
        @%idle bra    halve;                 //     if (thread < half) {
        mad.lo.u32    %there, %half, 4, %place;
        ld.shared.f32 %own, [%place];        //         own = sum[thread];
        ld.shared.f32 %other, [%there];      //         other = sum[thread + half];
        add.rn.f32    %own, %own, %other;
        st.shared.f32 [%place], %own;        //         sum[thread] += other;
    halve:                                   //     }
        shr.u32       %half, %half, 1;       //     half /= 2;
        setp.gt.u32   %more, %half, 0;
        @%more bra    round;                 // } while (half > 0);
    )" + end;
}
