package pqfile

import "time"

// Julian day number of 1970-01-01, from which INT96 timestamps count.
const julianEpoch = 2440588

// conversionOf tells how stored values of f become the view's v, or that they
// cannot. The kind is ConvertNone only if the bytes of a value are the same.
func conversionOf(v, f *Node) (Conversion, error) {
	kind, ok := conversionKind(v, f)
	if !ok {
		return Conversion{}, mismatch(v, f)
	}
	return Conversion{Kind: kind, From: f, Width: fixedWidth(v)}, nil
}

// conversionKind goes by what the view's leaf means.
func conversionKind(v, f *Node) (ConversionKind, bool) {
	switch v.Logical.Kind {
	case LogicalDecimal:
		return decimalConversion(v, f)
	case LogicalTimestamp, LogicalTime, LogicalDate:
		return temporalConversion(v, f)
	}
	switch v.Type {
	case Boolean:
		return ConvertNone, f.Type == Boolean && f.Logical.Kind == LogicalNone
	case Int32, Int64:
		return integerConversion(v, f)
	case Float, Double:
		switch {
		case f.Logical.Kind != LogicalNone:
			return 0, false
		case f.Type == v.Type:
			return ConvertNone, true
		}
		return ConvertFloatToDouble, f.Type == Float && v.Type == Double
	case ByteArray, FixedLenByteArray:
		return bytesConversion(v, f)
	}
	return 0, false
}

// integerConversion allows signed integers, and unsigned ones whose every
// value is also one of the signed type of their physical width.
func integerConversion(v, f *Node) (ConversionKind, bool) {
	bits := int8(64)
	if f.Type == Int32 {
		bits = 32
	}
	switch l := f.Logical; {
	case f.Type != Int32 && f.Type != Int64:
		return 0, false
	case l.Kind == LogicalNone:
	case l.Kind != LogicalInteger || !l.Signed && l.BitWidth >= bits:
		return 0, false
	}
	switch {
	case f.Type == v.Type:
		return ConvertNone, true
	case f.Type == Int32:
		return ConvertInt32ToInt64, true
	}
	return ConvertInt64ToInt32, true
}

// temporalConversion allows every unit of the same kind, INT96 and date for a
// timestamp. Whether a file calls a timestamp UTC or local does not change its
// bytes: the table's type decides.
func temporalConversion(v, f *Node) (ConversionKind, bool) {
	to := v.Logical.Kind
	if f.Type == Int96 && f.Logical.Kind == LogicalNone && to == LogicalTimestamp && v.Type == Int64 {
		switch v.Logical.Unit {
		case Micros:
			return ConvertInt96ToMicros, true
		case Nanos:
			return ConvertInt96ToNanos, true
		}
		return 0, false
	}
	if f.Type != Int32 && f.Type != Int64 || v.Type != Int32 && v.Type != Int64 {
		return 0, false
	}
	same := f.Logical.Kind == to
	if same && (to == LogicalDate || f.Logical.Unit == v.Logical.Unit) {
		switch {
		case f.Type == v.Type:
			return ConvertNone, true
		case f.Type == Int32:
			return ConvertInt32ToInt64, true
		}
		return ConvertInt64ToInt32, true
	}
	if to == LogicalDate || unitNanos(v.Logical.Unit) == 0 {
		return 0, false
	}
	if to == LogicalTimestamp && f.Logical.Kind == LogicalDate {
		return ConvertScale, !v.Logical.UTC && v.Type == Int64
	}
	return ConvertScale, same && unitNanos(f.Logical.Unit) != 0 && v.Type == Int64
}

// decimalConversion allows every stored form of the same scale and no more
// digits.
func decimalConversion(v, f *Node) (ConversionKind, bool) {
	from, to := f.Logical, v.Logical
	if from.Kind != LogicalDecimal || from.Scale != to.Scale || from.Precision > to.Precision {
		return 0, false
	}
	for _, n := range []*Node{v, f} {
		switch n.Type {
		case Int32, Int64, FixedLenByteArray, ByteArray:
		default:
			return 0, false
		}
	}
	if v.Type == f.Type && (v.Type != FixedLenByteArray || v.TypeLength == f.TypeLength) {
		return ConvertNone, true
	}
	return ConvertDecimal, true
}

// bytesConversion allows text and bytes for each other, and fixed lengths that
// are equal.
func bytesConversion(v, f *Node) (ConversionKind, bool) {
	switch f.Logical.Kind {
	case LogicalNone:
	case LogicalString, LogicalEnum, LogicalJSON, LogicalBSON, LogicalGeometry, LogicalGeography:
		if v.Type != ByteArray {
			return 0, false
		}
	case LogicalUUID:
		if v.Type != FixedLenByteArray {
			return 0, false
		}
	default:
		return 0, false
	}
	switch {
	case f.Type == ByteArray && v.Type == ByteArray:
		return ConvertNone, true
	case f.Type == FixedLenByteArray && v.Type == FixedLenByteArray:
		return ConvertNone, f.TypeLength == v.TypeLength
	case f.Type == FixedLenByteArray && v.Type == ByteArray, f.Type == ByteArray && v.Type == FixedLenByteArray:
		// A fixed-length string would be no text of the table's.
		return ConvertBytes, v.Logical.Kind == LogicalNone || v.Logical.Kind == LogicalUUID
	}
	return 0, false
}

// unitNanos is the nanoseconds of a unit, 0 for an unknown one.
func unitNanos(u TimeUnit) int64 {
	switch u {
	case Millis:
		return int64(time.Millisecond)
	case Micros:
		return int64(time.Microsecond)
	case Nanos:
		return 1
	}
	return 0
}

// floorDiv divides towards minus infinity; b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// mulAdd is a*b + c, with b > 0 and |c| < 2^62, and whether it fits 64 bits.
// Where c brings a product back into range, one b goes over to it first.
func mulAdd(a, b, c int64) (int64, bool) {
	switch {
	case a < 0 && c > 0:
		a, c = a+1, c-b
	case a > 0 && c < 0:
		a, c = a-1, c+b
	}
	p := a * b
	if p/b != a {
		return 0, false
	}
	s := p + c
	if (c > 0) != (s > p) && c != 0 {
		return 0, false
	}
	return s, true
}
