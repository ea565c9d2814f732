package reference

import "fmt"

// variant reads a variant value. Its bytes are of no use for comparing, since a
// writer is free to encode one value in many ways.
func variant(Record) (any, error) {
	return nil, fmt.Errorf("variant: %w", ErrUnsupported)
}
