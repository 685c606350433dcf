//go:build charts

package charts

// The charts are read from the module's folder, never linked in: they are a hundred megabytes.
import _ "github.com/cilium/charts"
