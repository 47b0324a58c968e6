// Draws to moments in one pass, a point at a time or a vector of points at a time.
//
// A draw is e/S with e = exp(logit - max), or a probability as it is, and S = Σ e. Its entropy is
// log S - (Σ e log e)/S, so that logits need no logarithm but that of S: one for 16 draws, of their
// product. Sums over draws are float64, relative to the first draw. The class t that leads in the
// first draw is known by 1 - p = Σ_{c≠t} e/S as well, which keeps its digits when p rounds to 1; so
// does S - 1 = (e_t - 1) + Σ_{c≠t} e, and the product of several S less 1. A draw that is nearly sure of
// another class has no digits of S - 1 left: `Sure` counts the entropy of such draws from their own leader.
//
// Few classes: lanes are points, and a class is a row of lanes. Many: lanes are classes. Both take
// four draws at a time, so that the sums of a class are loaded and stored once for four draws.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <cmath>
#include <vector>

#include "level.hpp"
#include "simd.hpp"

namespace {

constexpr int kGroup = 4;     // draws at a time
constexpr int kLogEvery = 4;  // groups: one logarithm for 16 draws

template <class T> inline Vec<double> widen(const T* from);  // as many of them as there are lanes of double
template <> inline Vec<double> widen(const double* from) { return load(from); }
template <> inline Vec<double> widen(const float* from) {
    typedef float Half __attribute__((vector_size(BALENT_BYTES / 2)));
    Half h;
    std::memcpy(&h, from, sizeof h);
    return __builtin_convertvector(h, Vec<double>);
}

// E[P] and Var P from the sums over draws of d = p - first and d².
inline void from_sums(double n, double first, double d, double dd, double& mean, double& var) {
    mean = first + d / n;
    var = (dd - d * d / n) / n;
    if (var < 0) var = 0;  // rounding, where all draws agree
}

inline double within_of(double mean, double var) {
    const double within = mean * (1 - mean) - var;
    return within > 0 ? within : 0;  // rounding, where all draws are one-hot
}

// Of one draw, or of a vector of them: false for NaN.
template <class V> inline auto sums_well(V total, bool logits, double tolerance) {
    const V off = total - 1.0;
    return logits ? (total > 0.0) & (total < 1e300) : (off <= tolerance) & (-off <= tolerance);
}

// Four values at c of four rows, as four rows of four values.
template <class T> inline void transpose4(const T* const* from, int c, T* to, int stride) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) to[j * stride + i] = from[i][c + j];
}

#if defined(__SSE__)
template <> inline void transpose4(const float* const* from, int c, float* to, int stride) {
    __m128 r0 = _mm_loadu_ps(from[0] + c), r1 = _mm_loadu_ps(from[1] + c), r2 = _mm_loadu_ps(from[2] + c),
           r3 = _mm_loadu_ps(from[3] + c);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to, r0), _mm_storeu_ps(to + stride, r1);
    _mm_storeu_ps(to + 2 * stride, r2), _mm_storeu_ps(to + 3 * stride, r3);
}
#endif

// e = exp(z) for z <= 0, and e log e onto a sum. NaN stays NaN.
template <class T> inline Vec<T> exp_and_log(Vec<T> z, Vec<T>& elog) {
    const Vec<T> low = all<T>(Traits<T>::lowest);
    z = low > z ? low : z;
    const Vec<T> e = exp<T>(z);
    elog += z * e;
    return e;
}

// A probability as it is, and e log e onto a sum: 0 log 0 = 0.
template <class T> inline Vec<T> with_log(Vec<T> e, Vec<T>& elog) {
    const Vec<T> floor = all<T>(Traits<T>::tiny);
    elog += e * log<T>(e > floor ? e : floor);
    return e;
}

// The sums over draws of one class, a vector of points (or of classes) at a time: count draws, whose
// e are `stride` apart.
template <class T>
inline void add_draws(const T* e, int64_t stride, const Vec<double>* inverse, int count, const double* first, double* d,
                      double* dd) {
    const Vec<double> origin = load(first);
    Vec<double> sum = load(d), squares = load(dd);
    if (count == kGroup) {
#pragma GCC unroll 4
        for (int g = 0; g < kGroup; ++g) {
            const Vec<double> x = widen(e + g * stride) * inverse[g] - origin;
            sum += x;
            squares += x * x;
        }
    } else {
        for (int g = 0; g < count; ++g) {
            const Vec<double> x = widen(e + g * stride) * inverse[g] - origin;
            sum += x;
            squares += x * x;
        }
    }
    store<double>(d, sum);
    store<double>(dd, squares);
}

// A draw that is nearly sure, by its own leading class l: log(1 + Σ_{c≠l} e/e_l) - (Σ_{c≠l} e log(e/e_l))/S is its
// entropy, of terms with one sign. `more` and `elog` take the places of S - 1 and Σ e log e.
struct Sure {
    double more, elog;

    // Is a class other than t nearly certain? Or are probabilities that do not quite sum to 1 so sure that log S and
    // Σ e log e cancel? Of one draw, or of a vector of them: e_t, Σ of the others, Σ e log e.
    template <bool logits, class V> static auto is(V lead, V rest, V elog) {
        const V more = rest + (lead - 1), little = V{} + 1.0f / 32;  // larger entropies keep their digits
        if constexpr (logits) return (lead < 1) & (more < little);
        else return more - elog < (lead < rest ? little : (more < 0 ? -more : more) / 8);
    }

    template <bool logits, class T> [[gnu::noinline, gnu::cold]] static Sure of(const T* e, int64_t stride, int64_t classes, double elog) {
        int64_t top = 0;
        for (int64_t c = 1; c < classes; ++c) top = e[c * stride] > e[top * stride] ? c : top;
        const double lead = double(e[top * stride]);
        Sure sums{0, logits ? elog : 0};  // e of the leading logit is 1, and 1 log 1 is 0: its sum is exact already
        for (int64_t c = 0; c < classes; ++c) {
            const double x = c == top ? 0 : double(e[c * stride]) / lead;
            sums.more += x;
            if (!logits && x > 0) sums.elog += lead * x * std::log(x);
        }
        return sums;
    }
};

// What is kept of the leading class and of the entropy, for a vector of points (or one, of whom all lanes tell).
struct Lead {
    Vec<double> p, q_first, q_d, q_dd, pq, entropy, product;

    // One draw: e of the leading class, Σ of the others, Σ e log e, S - 1, 1/S.
    void add(Vec<double> lead, Vec<double> rest, Vec<double> elog, Vec<double> more, Vec<double> inverse, bool is_first) {
        const Vec<double> q = rest * inverse;
        if (is_first) *this = Lead{}, q_first = q;
        p += lead * inverse;
        q_d += q - q_first;
        q_dd += (q - q_first) * (q - q_first);
        pq += lead * inverse * q;
        entropy -= elog * inverse;
        product += more + product * more;
    }

    void take_log() {
        entropy += log1p<double>(product);
        product = Vec<double>{};
    }

    void write(int lane, double n, double& mean, double& var, double& within, double& mean_entropy) const {
        double q;
        from_sums(n, q_first[lane], q_d[lane], q_dd[lane], q, var);
        mean = p[lane] / n;
        within = pq[lane] / n;
        mean_entropy = entropy[lane] / n;
    }
};

// ── few classes ──────────────────────────────────────────────────────────────────────────────────

constexpr int kFew = 48;  // below this, the sums of a vector of points stay in the nearest cache

template <class T, bool logits> struct Few {
    static constexpr int L = lanes<T>, LD = lanes<double>, H = L / LD;
    const Layout& in;
    const int C;
    const double tolerance;
    std::vector<T> e;                  // [draws of a group][classes][points]
    std::vector<double> first, d, dd;  // [classes][points]
    Lead leads[H];
    Vec<double> inverse[H][kGroup];
    Int<T> top;      // the leading class of each point
    int64_t bad[L];  // its first draw that is no distribution, or -1

    Few(const Layout& layout, double tolerance)
        : in(layout), C(int(layout.classes)), tolerance(tolerance), e(kGroup * C * L), first(C * L), d(C * L),
          dd(C * L) {}

    // The last point stands in for those beyond the end of the pool.
    void transpose(const T* draw, T* to, int points) const {
        const T* from[L < 4 ? 4 : L];
        for (int p = 0; p < L; ++p) {
            from[p] = draw + (p < points ? p : points - 1) * in.pool_stride;
            __builtin_prefetch(from[p] + 2 * kGroup * in.draw_stride);  // the draws after the next
        }
        if (L % 4 == 0 && in.class_stride == 1 && C >= 4)
            for (int p = 0; p < L; p += 4) {
                for (int c = 0; c + 4 <= C; c += 4) transpose4(from + p, c, to + c * L + p, L);
                if (C % 4) transpose4(from + p, C - 4, to + (C - 4) * L + p, L);  // overlaps: the same again
            }
        else
            for (int p = 0; p < L; ++p)
                for (int c = 0; c < C; ++c) to[c * L + p] = from[p][c * in.class_stride];
    }

    void find_top() {
        Vec<T> best = load(&e[0]);
        top = Int<T>{};
        for (int c = 1; c < C; ++c) {
            const Vec<T> x = load(&e[c * L]);
            const auto better = x > best;
            best = better ? x : best;
            top = better ? Int<T>{} + c : top;
        }
    }

    // One draw at the vector of points: logits become e in place; the leading class and the entropy are kept.
    bool take(T* x, int g, int64_t draw) {
        Vec<T> max{}, lowest{}, rest_{}, lead_{}, elog_{};
        if (logits) {
            max = load(x);
            for (int c = 1; c < C; ++c) {
                const Vec<T> z = load(x + c * L);
                max = z > max ? z : max;
            }
        }
        for (int c = 0; c < C; ++c) {
            const Vec<T> z = load(x + c * L);
            const Vec<T> y = logits ? exp_and_log<T>(z - max, elog_) : with_log<T>(z, elog_);
            const auto is_top = top == (Int<T>{} + c);
            rest_ += is_top ? Vec<T>{} : y;
            lead_ = is_top ? y : lead_;
            if (!logits) lowest = y < lowest ? y : lowest;
            if (logits) store<T>(x + c * L, y);
        }
        alignas(BALENT_BYTES) T rest[L], lead[L], elog[L];
        store<T>(rest, rest_), store<T>(lead, lead_), store<T>(elog, elog_);
        bool good = true;
        const Int<T> sure = Sure::is<logits>(lead_, rest_, elog_);
        const bool any_sure = any<T>(sure), negative = any<T>(lowest < Vec<T>{});
        for (int h = 0; h < H; ++h) {
            const Vec<double> r = widen(rest + h * LD), l = widen(lead + h * LD), total = r + l;
            Vec<double> more = r + (l - 1.0), each = widen(elog + h * LD);
            inverse[h][g] = 1.0 / total;
            for (int i = 0; any_sure && i < LD; ++i)
                if (sure[h * LD + i]) {
                    const Sure sums = Sure::of<logits>(x + h * LD + i, L, C, each[i]);
                    more[i] = sums.more, each[i] = sums.elog;
                }
            leads[h].add(l, r, each, more, inverse[h][g], draw == 0);
            if (!negative && !any<double>(~sums_well(total, logits, tolerance))) continue;
            for (int i = 0; i < LD; ++i)
                if (lowest[h * LD + i] < 0 || !sums_well<double>(total[i], logits, tolerance)) {
                    int64_t& first = bad[h * LD + i];
                    first = first < 0 ? draw : first;
                    good = false;
                }
        }
        return good;
    }

    void start() {
        for (int c = 0; c < C; ++c)
            for (int h = 0; h < H; ++h) {
                const int at = c * L + h * LD;
                store<double>(&first[at], widen(&e[at]) * inverse[h][0]);
                store<double>(&d[at], Vec<double>{});
                store<double>(&dd[at], Vec<double>{});
            }
    }

    bool points_at(const T* x, int points) {
        bool good = true;
        for (int64_t& draw : bad) draw = -1;
        for (int64_t draw = 0; draw < in.draws; draw += kGroup) {
            const int count = int(in.draws - draw < kGroup ? in.draws - draw : kGroup);
            for (int g = 0; g < count; ++g) transpose(x + (draw + g) * in.draw_stride, &e[g * C * L], points);
            if (draw == 0) find_top();
            for (int g = 0; g < count; ++g) good &= take(&e[g * C * L], g, draw + g);
            if (draw == 0) start();
            for (int c = 0; c < C; ++c)
                for (int h = 0; h < H; ++h) {
                    const int at = c * L + h * LD;
                    add_draws(&e[at], C * L, inverse[h], count, &first[at], &d[at], &dd[at]);
                }
            if (draw / kGroup % kLogEvery == kLogEvery - 1 || draw + count == in.draws)
                for (Lead& lead : leads) lead.take_log();
        }
        return good;
    }

    void write(const Output& out, int64_t point, int points) const {
        const double n = double(in.draws);
        for (int p = 0; p < points; ++p) {
            const int64_t row = (point + p) * C;
            for (int c = 0; c < C; ++c) {
                const int i = c * L + p;
                from_sums(n, first[i], d[i], dd[i], out.mean[row + c], out.var[row + c]);
                out.within[row + c] = within_of(out.mean[row + c], out.var[row + c]);
            }
            const int64_t t = row + top[p];
            leads[p / LD].write(p % LD, n, out.mean[t], out.var[t], out.within[t], out.entropy[point + p]);
        }
    }

    int64_t run(const T* x, const Output& out, int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; point += L) {
            const int points = int(end - point < L ? end - point : L);
            if (!points_at(x + point * in.pool_stride, points))
                for (int p = 0; p < points; ++p)
                    if (bad[p] >= 0) return (point + p) * in.draws + bad[p];
            write(out, point, points);
        }
        return -1;
    }
};

// ── many classes ─────────────────────────────────────────────────────────────────────────────────

template <class T, bool logits> struct Many {
    static constexpr int L = lanes<T>, LD = lanes<double>;
    static constexpr int64_t kBlock = 64 * L;  // a sum in T this long, then double: large C keeps its digits
    const Layout& in;
    const int64_t C, full, padded;
    const double tolerance;
    std::vector<T> gathered, others, e;  // [draws of a group][classes], [classes], [draws of a group][classes]
    std::vector<double> first, d, dd;    // [classes]
    Vec<T> unseen;                       // of the last vector, which overlaps the one before: 0 for what that one had

    Many(const Layout& layout, double tolerance)
        : in(layout), C(layout.classes), full(C / L * L), padded((C + L - 1) / L * L), tolerance(tolerance),
          gathered(in.class_stride == 1 ? 0 : kGroup * C), others(padded, T(1)),
          e(kGroup * padded), first(padded), d(padded), dd(padded) {
        for (int i = 0; i < L; ++i) unseen[i] = C - L + i < full ? 0 : 1;
    }

    const T* contiguous(const T* row, int g) {
        if (in.class_stride == 1) return row;
        T* to = &gathered[g * C];
        for (int64_t c = 0; c < C; ++c) to[c] = row[c * in.class_stride];
        return to;
    }

    int64_t leader(const T* row) const {
        int64_t top = 0;
        for (int64_t c = 1; c < C; ++c)
            if (row[c] > row[top]) top = c;
        return top;
    }

    T max_of(const T* row) const {
        Vec<T> max = load(row + C - L);
        for (int64_t c = 0; c < full; c += L) {
            const Vec<T> z = load(row + c);
            max = z > max ? z : max;
        }
        return largest<T>(max);
    }

    struct Row {
        Vec<double> elog{};  // Σ e log e, over lanes still to be added
        double rest = 0;     // Σ e of all but the leader
        bool negative = false;

        void add(Vec<T> elog_, Vec<T> rest_) {
            T x[L];
            store<T>(x, elog_);
            for (int i = 0; i < L; i += LD) elog += widen(x + i);
            rest += sum<T>(rest_);
        }
    };

    // Several rows side by side, which hides what each operation waits for.
    template <int G> void take(const T* const* rows, T* to, Row* sums) const {
        T max[G];
        for (int g = 0; g < G; ++g) max[g] = logits ? max_of(rows[g]) : 0;
        Vec<T> lowest[G] = {};
        const auto element = [&](int g, int64_t c, Vec<T>& elog) {
            const Vec<T> z = load(rows[g] + c);
            const Vec<T> y = logits ? exp_and_log<T>(z - max[g], elog) : with_log<T>(z, elog);
            if (!logits) lowest[g] = y < lowest[g] ? y : lowest[g];
            store<T>(to + g * padded + c, y);
            return y * load(&others[c]);
        };
        for (int64_t begin = 0; begin < full; begin += kBlock) {
            const int64_t end = begin + kBlock < full ? begin + kBlock : full;
            Vec<T> elog[G] = {}, rest[G] = {};
            for (int64_t c = begin; c < end; c += L)
#pragma GCC unroll 4
                for (int g = 0; g < G; ++g) {
                    __builtin_prefetch(rows[g] + c + kGroup * in.draw_stride);  // the next rows
                    rest[g] += element(g, c, elog[g]);
                }
            if (end == full && full < C)
#pragma GCC unroll 4
                for (int g = 0; g < G; ++g) {
                    Vec<T> last{};
                    rest[g] += element(g, C - L, last) * unseen;
                    elog[g] += last * unseen;
                }
            for (int g = 0; g < G; ++g) sums[g].add(elog[g], rest[g]);
        }
        for (int g = 0; g < G && !logits; ++g) sums[g].negative = sum<T>(lowest[g]) < 0;
    }

    void start(double inverse) {
        for (int64_t c = 0; c < padded; c += LD) {
            store<double>(&first[c], widen(&e[c]) * inverse);
            store<double>(&d[c], Vec<double>{});
            store<double>(&dd[c], Vec<double>{});
        }
    }

    // Fills the moments of one point; its first draw that is no distribution, or -1.
    int64_t point_at(const T* x, const Output& out, int64_t point) {
        Lead lead{};
        Vec<double> inverse[kGroup], elog{};
        const int64_t top = leader(contiguous(x, 0));
        int64_t bad = -1;
        others[top] = 0;
        for (int64_t draw = 0; draw < in.draws; draw += kGroup) {
            const int count = int(in.draws - draw < kGroup ? in.draws - draw : kGroup);
            const T* rows[kGroup];
            Row sums[kGroup];
            for (int g = 0; g < count; ++g) rows[g] = contiguous(x + (draw + g) * in.draw_stride, g);
            if (count == kGroup)
                take<kGroup>(rows, &e[0], sums);
            else
                for (int g = 0; g < count; ++g) take<1>(rows + g, &e[g * padded], sums + g);
            for (int g = 0; g < count; ++g) {
                const double l = e[g * padded + top], total = sums[g].rest + l;
                if (bad < 0 && (sums[g].negative || !sums_well(total, logits, tolerance))) bad = draw + g;
                inverse[g] = all<double>(1 / total);
                double more = sums[g].rest + (l - 1);
                if (Sure::is<logits>(l, sums[g].rest, logits ? 0 : sum<double>(sums[g].elog))) {
                    const Sure sure = Sure::of<logits>(&e[g * padded], 1, C, 0);
                    more = sure.more;
                    if (!logits) sums[g].elog = all<double>(sure.elog / LD);
                }
                lead.add(all<double>(l), all<double>(sums[g].rest), Vec<double>{}, all<double>(more), inverse[g],
                         draw + g == 0);
                elog += sums[g].elog * inverse[g];
            }
            if (draw == 0) start(inverse[0][0]);
            for (int64_t c = 0; c < padded; c += LD)
                add_draws(&e[c], padded, inverse, count, &first[c], &d[c], &dd[c]);
            if (draw / kGroup % kLogEvery == kLogEvery - 1 || draw + count == in.draws) lead.take_log();
        }
        others[top] = 1;
        if (bad < 0) write(out, point, top, lead, sum<double>(elog));
        return bad;
    }

    void write(const Output& out, int64_t point, int64_t top, const Lead& lead, double elog) const {
        const double n = double(in.draws);
        double *mean = out.mean + point * C, *var = out.var + point * C, *within = out.within + point * C;
        for (int64_t c = 0; c < C; ++c) {
            from_sums(n, first[c], d[c], dd[c], mean[c], var[c]);
            within[c] = within_of(mean[c], var[c]);
        }
        lead.write(0, n, mean[top], var[top], within[top], out.entropy[point]);
        out.entropy[point] -= elog / n;
    }

    int64_t run(const T* x, const Output& out, int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; ++point) {
            const int64_t bad = point_at(x + point * in.pool_stride, out, point);
            if (bad >= 0) return point * in.draws + bad;
        }
        return -1;
    }
};

template <class T, bool logits>
int64_t moments_of(const T* x, const Layout& in, const Output& out, double tolerance, int64_t begin, int64_t end) {
    if (in.classes < kFew) return Few<T, logits>(in, tolerance).run(x, out, begin, end);
    return Many<T, logits>(in, tolerance).run(x, out, begin, end);
}

template <class T>
int64_t moments_range(const T* x, const Layout& in, const Output& out, bool logits, double tolerance, int64_t begin,
                      int64_t end) {
    return logits ? moments_of<T, true>(x, in, out, tolerance, begin, end)
                  : moments_of<T, false>(x, in, out, tolerance, begin, end);
}

}  // namespace
