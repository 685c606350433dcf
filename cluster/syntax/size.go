package syntax

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The units of a size, in bytes.
const (
	MiB = int64(1) << 20
	GiB = int64(1) << 30
	TiB = int64(1) << 40
)

const (
	maxDisk     = 128 * TiB // Proxmox VE: the most that its own dialog takes for a disk
	maxMemory   = 16 * TiB  // more than any machine has that Proxmox VE runs on: the unit is mistaken
	maxDuration = 24 * time.Hour
	longest     = "24h" // maxDuration

	timePattern     = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`
	quantityPattern = `^[1-9][0-9]{0,8}(MiB|GiB|TiB)$`
)

var (
	quantityForm  = regexp.MustCompile(quantityPattern)
	looseQuantity = regexp.MustCompile(`^(?i)([0-9]{1,9}([.][0-9]{1,6})?) *([kmgt])(i?b|i)?$`)
	bareNumber    = regexp.MustCompile(`^[0-9]+([.][0-9]+)?$`)
	durationForm  = regexp.MustCompile(`^` + unitPattern("h") + unitPattern("m") + unitPattern("s") +
		unitPattern("ms") + unitPattern("us") + unitPattern("ns") + `$`)
	looseDuration = regexp.MustCompile(`([0-9]+(?:[.][0-9]+)?)([a-z]+)`)
)

var sizeForms = []Form{
	{
		Name: "time", What: "a time", Words: "time, as in RFC 3339", Example: "2026-11-26T10:00:00Z", Pattern: timePattern,
		remedy: "write date, time and zone, in quotes, such as " + `"2026-11-26T10:00:00Z"`,
		check:  refusing(func(value string) bool { _, err := time.Parse(time.RFC3339, value); return err != nil }, ""),
	},
	{
		Name: "share", What: "a number or a share", Words: "number, 1 to 1000, or 1% to 100%", Example: "10%",
		Pattern: `^([1-9][0-9]{0,2}|1000|([1-9][0-9]?|100)%)$`, remedy: "write a number from 1 to 1000, or a share from 1% to 100%",
	},
	sizeForm("quantity", "a size", "size", "8GiB", MiB, maxDisk, "a size"),
	sizeForm("memory-size", "a size of memory", "size, whole MiB", "8GiB", MiB, maxMemory, "a machine's memory"),
	sizeForm("disk-size", "a size of a disk", "size, whole GiB", "40GiB", GiB, maxDisk, "a disk"),
	{
		Name: "duration", What: "a duration", Words: "duration, at most " + longest, Example: "10m", Pattern: durationForm.String(),
		check: durationFault, fix: fixDuration, remedy: "write numbers with units, such as 90s, 10m or 1h30m",
	},
}

// Bytes is the number of bytes of a quantity such as 8GiB: 0 if it is no quantity, at most the largest int64.
func Bytes(quantity string) int64 {
	if !quantityForm.MatchString(quantity) {
		return 0
	}
	digits, unit := quantity[:len(quantity)-3], quantity[len(quantity)-3:]
	count, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	size := map[string]int64{"MiB": MiB, "GiB": GiB, "TiB": TiB}[unit]
	if count > math.MaxInt64/size {
		return math.MaxInt64
	}
	return count * size
}

// sizeForm is the form of a size that is a multiple of step and at most most.
func sizeForm(name, what, words, example string, step, most int64, holder string) Form {
	return Form{
		Name: name, What: what, Words: words, Example: example, Pattern: quantityPattern,
		remedy: "write a whole number and a unit, such as 512MiB, 8GiB or 1TiB",
		check: func(value string) *Fault {
			size := Bytes(value)
			switch {
			case bareNumber.MatchString(value):
				return because("has no unit")
			case size > most:
				return because("is more than "+SizeText(most)+", too much for "+holder, "write at most "+SizeText(most))
			case size%step != 0:
				return because("is not a whole number of " + strings.TrimPrefix(SizeText(step), "1"))
			}
			return nil
		},
		fix: func(value string) []string {
			match := looseQuantity.FindStringSubmatch(value)
			if match == nil {
				return nil
			}
			count, err := strconv.ParseFloat(match[1], 64)
			if err != nil {
				return nil
			}
			unit := map[string]int64{"k": 1 << 10, "m": MiB, "g": GiB, "t": TiB}[strings.ToLower(match[3])]
			step := step
			if match[2] != "" || unit < step {
				step = GiB // every key takes a whole number of GiB
			}
			steps := math.Ceil(count * float64(unit) / float64(step))
			if steps < 1 || steps > float64(most/step) {
				return nil
			}
			return []string{SizeText(int64(steps) * step)}
		},
	}
}

// SizeText is a size in the largest unit in which it is a whole number, such as 8GiB. What is less than a MiB is left out.
func SizeText(size int64) string {
	switch {
	case size != 0 && size%TiB == 0:
		return fmt.Sprintf("%dTiB", size/TiB)
	case size != 0 && size%GiB == 0:
		return fmt.Sprintf("%dGiB", size/GiB)
	}
	return fmt.Sprintf("%dMiB", size/MiB)
}

// unitPattern is the pattern of a part of a duration. Each unit is there at most once, the largest first, as Go writes them.
func unitPattern(unit string) string { return `((0|[1-9][0-9]*)([.][0-9]+)?` + unit + `)?` }

func durationFault(value string) *Fault {
	if bareNumber.MatchString(value) {
		return because("has no unit")
	}
	if !durationForm.MatchString(value) {
		return wrong()
	}
	switch length, err := time.ParseDuration(value); {
	case err != nil || length > maxDuration:
		return because("is longer than "+longest, "write at most "+longest)
	case length <= 0:
		return because("is no time at all", "write more, such as 10m")
	}
	return nil
}

// fixDuration writes the units as Go does: 10 min is 10m, and a day is 24h.
func fixDuration(value string) []string {
	units := map[string]string{
		"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
		"hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	}
	bare := strings.ToLower(strings.NewReplacer(" ", "", "+", "").Replace(value))
	if bare == "1d" || bare == "1day" {
		return []string{"24h"}
	}
	return []string{looseDuration.ReplaceAllStringFunc(bare, func(part string) string {
		match := looseDuration.FindStringSubmatch(part)
		digits := strings.TrimLeft(match[1], "0")
		if digits == "" || digits[0] == '.' {
			digits = "0" + digits
		}
		if unit, found := units[match[2]]; found {
			return digits + unit
		}
		return digits + match[2]
	})}
}
