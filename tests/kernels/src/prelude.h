/* What the kernels are written in: C that is compiled for the emulated GPU (DEVICE) and for the host. */
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef _Float16 f16;
typedef float f32;
typedef double f64;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x2 __attribute__((ext_vector_type(2)));
typedef f32 f32x4 __attribute__((ext_vector_type(4)));
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
typedef i16 i16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));
typedef i32 i32x2 __attribute__((ext_vector_type(2)));
#define GROUP 128u
#define IN_WORDS 8u
#define OUT_WORDS 4u
#ifdef DEVICE
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(3)))
#define CONSTANT __attribute__((address_space(4)))
#define SCOPE "workgroup"
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, SCOPE), __builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, SCOPE))
#define KERNEL(name, phases)                                                                                        \
    __attribute__((amdgpu_kernel, visibility("protected"))) void name(                                              \
        GLOBAL const u32 *in, GLOBAL u32 *out, GLOBAL u32 *shared) {                                                \
        static LOCAL u32 lds[1024] __attribute__((loader_uninitialized));                                           \
        u32 l = __builtin_amdgcn_workitem_id_x(), g = __builtin_amdgcn_workgroup_id_x();                            \
        phases                                                                                                      \
    }
#else
#define GLOBAL
#define LOCAL
#define CONSTANT
#endif
#define LANE u32 l, u32 g, GLOBAL const u32 *in, GLOBAL u32 *out, GLOBAL u32 *shared, LOCAL u32 *lds
#define PHASE static __attribute__((always_inline)) inline void
#define HELPER static __attribute__((noinline))
#define W(k) in[(g * GROUP + l) * IN_WORDS + (k)]
#define PUT(k, value) out[(g * GROUP + l) * OUT_WORDS + (k)] = (value)

static inline f32 f32_of(u32 bits) { return __builtin_bit_cast(f32, bits); }
static inline f64 f64_of(u64 bits) { return __builtin_bit_cast(f64, bits); }
static inline f16 f16_of(u32 bits) { return __builtin_bit_cast(f16, (u16)bits); }
/* NaNs are one NaN: their signs and payloads are not the language's business. */
static inline u32 bits_f32(f32 x) { return x != x ? 0x7fc00000u : __builtin_bit_cast(u32, x); }
static inline u64 bits_f64(f64 x) { return x != x ? 0x7ff8000000000000ull : __builtin_bit_cast(u64, x); }
static inline u32 bits_f16(f16 x) { return x != x ? 0x7e00u : __builtin_bit_cast(u16, x); }
static inline u32 fold(u64 x) { return (u32)(x ^ x >> 32); }
/* Operands of what is defined for some numbers only. A product that is -0 and becomes an f16 is +0 with LLVM 19 and 21 (v_fma_mixlo_f16
 * with an addend of +0), and LLVM 19 takes all ones for a short number when it divides: neither is asked for. */
static inline f32 tame_f32(f32 x) { return x == x && x != 0 ? x : 1.0f; }
static inline f64 tame_f64(f64 x) { return x == x && x != 0 ? x : 1.0; }
static inline f32 within_f32(f32 x, f32 limit) { return x > -limit && x < limit ? x : 3.0f; }
static inline f64 within_f64(f64 x, f64 limit) { return x > -limit && x < limit ? x : 3.0; }
static inline i32 div_i32(i32 a, i32 b) { return b == 0 || (b == -1 && a < -0x7fffffff) ? a : a / b; }
static inline i32 mod_i32(i32 a, i32 b) { return b == 0 || b == -1 ? b : a % b; }
static inline u32 div_u32(u32 a, u32 b) { return b ? a / b : 77; }
static inline u32 mod_u32(u32 a, u32 b) { return b ? a % b : a; }
static inline i64 div_i64(i64 a, i64 b) { return b == 0 || (b == -1 && a < -0x7fffffffffffffffll) ? a : a / b; }
static inline i64 mod_i64(i64 a, i64 b) { return b == 0 || b == -1 ? b : a % b; }
static inline u64 div_u64(u64 a, u64 b) { return b ? a / b : 77; }
static inline u64 mod_u64(u64 a, u64 b) { return b ? a % b : a; }
static inline u64 mulhi_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline i64 mulhi_i64(i64 a, i64 b) { return (i64)((__int128)a * b >> 64); }
static inline u32 mulhi_u32(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
static inline i32 mulhi_i32(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
static inline u32 clz(u32 x) { return x ? (u32)__builtin_clz(x) : 32u; }
static inline u32 ctz(u32 x) { return x ? (u32)__builtin_ctz(x) : 32u; }
static inline u32 clz64(u64 x) { return x ? (u32)__builtin_clzll(x) : 64u; }
static inline u32 rotl(u32 x, u32 n) { return x << (n & 31) | x >> (-n & 31); }
static inline u64 rotl64(u64 x, u32 n) { return x << (n & 63) | x >> (-n & 63); }
