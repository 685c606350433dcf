package syntax

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// scheduleFields are the five parts of a CronJob's schedule, with the least and the highest number and the names that stand for numbers.
var scheduleFields = []struct {
	least, most int
	names       []string
}{
	{0, 59, nil},
	{0, 23, nil},
	{1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var scheduleForms = []Form{{
	// Kubernetes: ParseStandard of github.com/robfig/cron/v3
	Name: "cron-schedule", What: "a schedule of a CronJob", Words: "schedule as a CronJob writes it", Example: "17 */6 * * *",
	Pattern: `^[0-9A-Za-z*/,?@ -]+$`,
	check: func(value string) *Fault {
		if strings.HasPrefix(value, "@") {
			if !slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, value) {
				return wrong()
			}
			return nil
		}
		parts := strings.Fields(value)
		if len(parts) != len(scheduleFields) {
			return because("has not five parts", "write minute, hour, day, month and weekday, such as 17 */6 * * *")
		}
		for i, part := range parts {
			field := scheduleFields[i]
			for item := range strings.SplitSeq(part, ",") {
				if !isScheduleItem(item, field.least, field.most, field.names) {
					return because("has "+item+" where a CronJob takes "+strconv.Itoa(field.least)+" to "+strconv.Itoa(field.most),
						"correct it, as in 17 */6 * * *")
				}
			}
		}
		day, err := strconv.Atoi(parts[2])
		if err == nil && parts[4] == "*" && !strings.ContainsAny(parts[3], "*?/-") && !isDayOf(day, parts[3]) {
			return because("names a day that none of its months has", "write a day that there is, such as 17 3 1 * *")
		}
		return nil
	},
}}

// isDayOf tells whether one of a list of months has a day.
func isDayOf(day int, months string) bool {
	return slices.ContainsFunc(strings.Split(months, ","), func(month string) bool {
		number, _ := scheduleNumber(month, 1, scheduleFields[3].names)
		return day <= time.Date(2024, time.Month(number)+1, 0, 0, 0, 0, 0, time.UTC).Day() // of a leap year
	})
}

// isScheduleItem tells whether a text is *, a number or a range, with a step or without.
func isScheduleItem(item string, least, most int, names []string) bool {
	item, step, stepped := strings.Cut(item, "/")
	if number, err := strconv.Atoi(step); stepped && (err != nil || number < 1) {
		return false
	}
	if item == "*" || item == "?" {
		return true
	}
	first, last, isRange := strings.Cut(item, "-")
	from, fromIs := scheduleNumber(first, least, names)
	to, toIs := scheduleNumber(last, least, names)
	if !isRange {
		to, toIs = from, fromIs
	}
	return fromIs && toIs && from >= least && to <= most && from <= to
}

// scheduleNumber returns the number of a text, or of a name.
func scheduleNumber(text string, least int, names []string) (int, bool) {
	if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
		return i + least, true
	}
	number, err := strconv.Atoi(text)
	return number, err == nil && !strings.ContainsAny(text, "+-")
}
