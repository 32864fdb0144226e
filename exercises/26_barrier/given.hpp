// Declares what exercise barrier provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_barrier {

// The beginning of the kernel puts the loss of row `thread` into %own, and the address of sum[thread] into %place.
inline const std::string beginning = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add_rows(
    .param .u64 losses,
    .param .u64 result
)
{
    .shared .align 4 .b8 sum[32];
    .reg .u32  %thread, %place, %there, %half;
    .reg .f32  %own, %other;
    .reg .u64  %from, %to, %bytes;
    .reg .pred %idle, %more;
    mov.u32       %thread, %tid.x;
    mul.wide.u32  %bytes, %thread, 4;
    ld.param.u64  %from, [losses];
    add.u64       %from, %from, %bytes;
    ld.global.f32 %own, [%from];
    mov.u32       %place, sum;
    mad.lo.u32    %place, %thread, 4, %place;
)";

// The end of the kernel: thread 0 stores sum[0] as the result.
inline const std::string end = R"(
    setp.ne.u32   %idle, %thread, 0;
    @%idle bra    leave;
    ld.param.u64  %to, [result];
    ld.shared.f32 %own, [%place];
    st.global.f32 [%to], %own;
leave:
    ret;
}
)";

}  // namespace exercise_barrier

// Returns a kernel in PTX. Eight threads add the losses of eight rows.
std::string kernel();
HAND_IN(kernel);
