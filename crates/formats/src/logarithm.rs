//! `ln` and whole powers of `f64` by `+ - * /` alone, rounded to the nearest in all but one of some
//! billions of cases. `core` has neither function, and the platforms' functions differ in their
//! last bits. `guava/layout.rs` calls this file, and must find the same results as a JVM.
//!
//! Numbers are carried as sums of two `f64`, 106 bits. Source: Dekker, "A floating-point technique
//! for extending the available precision" (1971); Knuth's and Dekker's exact sum and product.

/// The number `hi + lo`, where `lo` is at most half a unit in the last place of `hi`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Twofold {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

/// The natural logarithm of 2: the nearest `f64`, and the nearest to the rest.
const LN_2: Twofold = Twofold {
    hi: core::f64::consts::LN_2,
    lo: 2.319_046_813_846_299_6e-17,
};

impl Twofold {
    pub(crate) const fn new(number: f64) -> Self {
        Self { hi: number, lo: 0.0 }
    }

    /// The exact sum of two numbers (Knuth).
    pub(crate) fn sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        let from_b = hi - a;
        Self {
            hi,
            lo: (a - (hi - from_b)) + (b - from_b),
        }
    }

    /// The exact product of two numbers, neither of them huge (Dekker).
    fn product(a: f64, b: f64) -> Self {
        /// A number as the sum of two of 26 bits.
        fn split(a: f64) -> (f64, f64) {
            let scaled = 134_217_729.0 * a; // 2^27 + 1
            let high = scaled - (scaled - a);
            (high, a - high)
        }
        let hi = a * b;
        let ((a1, a2), (b1, b2)) = (split(a), split(b));
        Self {
            hi,
            lo: ((a1 * b1 - hi) + a1 * b2 + a2 * b1) + a2 * b2,
        }
    }

    fn add(self, other: Self) -> Self {
        let high = Self::sum(self.hi, other.hi);
        let low = Self::sum(self.lo, other.lo);
        let sum = Self::sum(high.hi, high.lo + low.hi);
        Self::sum(sum.hi, sum.lo + low.lo)
    }

    fn mul(self, other: Self) -> Self {
        let product = Self::product(self.hi, other.hi);
        Self::sum(product.hi, product.lo + (self.hi * other.lo + self.lo * other.hi))
    }

    fn div(self, other: Self) -> Self {
        let mut rest = self;
        let mut quotient = Self::new(0.0);
        // Each turn adds the bits of one f64.
        for _ in 0..3 {
            let part = rest.hi / other.hi;
            rest = rest.add(other.mul(Self::new(-part)));
            quotient = quotient.add(Self::new(part));
        }
        quotient
    }
}

/// The natural logarithm of a positive number below 2^1000.
pub(crate) fn ln(x: Twofold) -> f64 {
    // x = m * 2^e with m between the roots of 1/2 and 2; subnormal numbers are first made normal.
    let (x, less) = if x.hi < f64::MIN_POSITIVE {
        (Twofold::new(x.hi * 18_014_398_509_481_984.0), 54) // 2^54
    } else {
        (x, 0)
    };
    let exponent = (x.hi.to_bits() >> 52) as i32 - 1023;
    let e = exponent + i32::from(mantissa(x.hi) > core::f64::consts::SQRT_2);
    let scale = f64::from_bits(((1023 - e) as u64) << 52); // 2^-e
    let m = Twofold {
        hi: x.hi * scale,
        lo: x.lo * scale,
    };
    // ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1)/(m + 1), at most 0.172: the
    // 22nd term is below 2^-113.
    let s = m.add(Twofold::new(-1.0)).div(m.add(Twofold::new(1.0)));
    let square = s.mul(s);
    let mut series = Twofold::new(0.0);
    for i in (0..22).rev() {
        let term = Twofold::new(1.0).div(Twofold::new(f64::from(2 * i + 1)));
        series = series.mul(square).add(term);
    }
    let ln_m = s.mul(series).mul(Twofold::new(2.0));
    LN_2.mul(Twofold::new(f64::from(e - less))).add(ln_m).hi
}

/// The number by the power of two that takes it into 1..2.
fn mantissa(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & ((1 << 52) - 1) | 1023 << 52)
}

/// `x^n` for an `x` in 0..=1.
pub(crate) fn pow(x: f64, mut n: u64) -> f64 {
    let (mut result, mut square) = (Twofold::new(1.0), Twofold::new(x));
    while n > 0 {
        if n & 1 == 1 {
            result = result.mul(square);
        }
        square = square.mul(square);
        n >>= 1;
    }
    result.hi
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// Distance in steps from one `f64` to the next.
    fn steps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    fn numbers() -> impl Iterator<Item = f64> {
        (0..20_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// The platform's `ln` is right to within one step, and mostly to the last bit.
    #[test]
    fn ln_is_that_of_the_platform() {
        let tiny = numbers().map(|x| x * 1e-300);
        let near_one = numbers().map(|x| 1.0 - x * 1e-9);
        let tinier = [4.9e-324, 1e-310, f64::MIN_POSITIVE, 0.5, 1.0, 1.5, 1.9999];
        let mut differ = 0;
        for x in numbers().chain(tiny).chain(near_one).chain(tinier).filter(|&x| x > 0.0) {
            let (ours, theirs) = (ln(Twofold::new(x)), x.ln());
            assert!(steps(ours, theirs) <= 1, "ln {x:e}: {ours:e}, not {theirs:e}");
            differ += u32::from(ours != theirs);
        }
        assert!(differ < 1000, "{differ} of 60000 differ");
    }

    /// The expected values have 20 digits, by Python's `decimal`, rounded to the nearest `f64`.
    #[test]
    #[expect(clippy::excessive_precision, reason = "the digits are what is tested")]
    fn ln_is_rounded_to_the_nearest() {
        for (x, expected) in [
            (0.01, -4.605_170_185_988_091_347),
            (0.03, -3.506_557_897_319_981_713_6),
            (2.0, core::f64::consts::LN_2),
            (4.9e-324, -744.440_071_921_381_262_3),
            (1.0, 0.0),
        ] {
            assert_eq!(ln(Twofold::new(x)), expected, "ln {x}");
        }
    }

    /// The second half of a sum counts: 1 - f, for an f of which 1 absorbs a part.
    #[test]
    fn ln_of_a_sum_is_ln_1p() {
        for f in numbers().flat_map(|x| [x, x * 1e-10, x * 1e-20]) {
            let (ours, theirs) = (ln(Twofold::sum(1.0, -f)), (-f).ln_1p());
            assert!(
                steps(ours, theirs) <= 1 || ours == theirs,
                "ln(1 - {f:e}): {ours:e}, not {theirs:e}"
            );
        }
    }

    #[test]
    fn pow_is_that_of_the_platform() {
        // (mingw's is off by more: 0.7082039324993691^7 by two units in the last place.)
        #[cfg(not(all(windows, target_env = "gnu")))]
        for (i, x) in numbers().enumerate() {
            let n = i as u64 % 255 + 1;
            let (ours, theirs) = (pow(x, n), x.powf(n as f64));
            assert!(
                steps(ours, theirs) <= 1 || theirs < 1e-280,
                "{x}^{n}: {ours:e}, not {theirs:e}"
            );
        }
        assert_eq!((pow(0.0, 5), pow(1.0, 255), pow(0.5, 10)), (0.0, 1.0, 1.0 / 1024.0));
    }
}
