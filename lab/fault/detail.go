package fault

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Default periods of a flapping fault.
const (
	flapUp   = 2 * time.Second
	flapDown = 3 * time.Second
)

// Flapping tells whether f, a flapping fault, breaks a target now, and how long this phase still lasts. started is when
// the target started. The first phase is broken, so the fault shows at once, also at a target that starts while f is on.
func (f Fault) Flapping(started time.Time) (broken bool, left time.Duration) {
	return f.phase(min(time.Since(f.since), time.Since(started)))
}

// phase is Flapping at a time after the first phase began.
func (f Fault) phase(since time.Duration) (broken bool, left time.Duration) {
	up, down, err := periods(f.Detail)
	if err != nil {
		up, down = flapUp, flapDown
	}
	at := since % (up + down)
	if at < down {
		return true, down - at
	}
	return false, up + down - at
}

// periods reads the Detail of a flapping fault: how long it works and how long it is broken, "2s/3s". An empty one
// means the defaults.
func periods(detail string) (up, down time.Duration, err error) {
	if detail == "" {
		return flapUp, flapDown, nil
	}
	first, second, found := strings.Cut(detail, "/")
	up, err1 := time.ParseDuration(first)
	down, err2 := time.ParseDuration(second)
	if err1 != nil || err2 != nil || !found || up <= 0 || down <= 0 {
		return 0, 0, errors.New("not two periods, working and broken; write e.g. 2s/3s")
	}
	return up, down, nil
}

func isDuration(detail string) error {
	if d, err := time.ParseDuration(detail); err != nil || d <= 0 {
		return errors.New("not a time; write e.g. 5s")
	}
	return nil
}

func isPeriods(detail string) error {
	_, _, err := periods(detail)
	return err
}

var statusLine = regexp.MustCompile(`^([45]\d\d)(?: (.*))?$`)

// SplitStatus reads the Detail of ProxmoxError: an HTTP status with its reason, "500 …". Text without a status is the
// reason of a 500.
func SplitStatus(detail string) (code int, reason string, err error) {
	if m := statusLine.FindStringSubmatch(detail); m != nil {
		_, err := fmt.Sscan(m[1], &code)
		return code, m[2], err
	}
	if regexp.MustCompile(`^\d`).MatchString(detail) {
		return 0, "", errors.New("no HTTP error; write a status from 400 to 599 and a reason, e.g. 500 Internal Server Error")
	}
	return 500, detail, nil
}

// Status is the HTTP status that the Detail of a fault gives, which was checked when the fault was switched on. A reason that is missing is
// that of the status.
func (f Fault) Status() (code int, reason string) {
	code, reason, _ = SplitStatus(f.Detail)
	return code, cmp.Or(reason, http.StatusText(code))
}

func isStatusLine(detail string) error {
	_, _, err := SplitStatus(detail)
	return err
}

func isForm(pattern, problem string) func(string) error {
	re := regexp.MustCompile(pattern)
	return func(detail string) error {
		if !re.MatchString(detail) {
			return errors.New(problem)
		}
		return nil
	}
}
