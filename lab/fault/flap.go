package fault

import "time"

// How long what flaps is well and how long it is not, unless the fault says otherwise.
const (
	flapUp   = 2 * time.Second
	flapDown = 3 * time.Second
)

// Flapping is where something that comes and goes by f is, when f bites since some time, and how long that lasts. It
// begins broken, so that the fault shows at once.
func (f Fault) Flapping(since time.Duration) (broken bool, left time.Duration) {
	up, down, err := Periods(f.Detail, flapUp, flapDown)
	if err != nil {
		up, down = flapUp, flapDown
	}
	at := since % (up + down)
	if at < down {
		return true, down - at
	}
	return false, up + down - at
}
