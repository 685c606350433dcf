package health_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

// screen is a terminal as far as Live needs one: text, CR, LF, cursor up, and both ways of clearing. Lines that reach the bottom scroll.
type screen struct {
	t              *testing.T
	columns, lines int
	rows           [][]rune
	x, y           int
	scrolled       int // lines that have left the screen at the top
	wrote          int // characters in all, without control sequences
}

func (s *screen) Write(text []byte) (int, error) {
	for rest := []rune(string(text)); len(rest) > 0; {
		switch rest[0] {
		case '\x1b':
			end := 2
			for ; rest[end] < '@'; end++ {
			}
			s.control(string(rest[2:end]), rest[end])
			rest = rest[end+1:]
			continue
		case '\r':
			s.x = 0
		case '\n':
			s.x = 0
			s.y++
			if s.y == s.lines {
				s.y--
				s.rows = s.rows[1:]
				s.scrolled++
			}
		default:
			s.put(rest[0])
		}
		rest = rest[1:]
	}
	return len(text), nil
}

func (s *screen) put(char rune) {
	require.Less(s.t, s.x, s.columns, "a line is longer than the terminal is wide")
	for len(s.rows) <= s.y {
		s.rows = append(s.rows, nil)
	}
	for len(s.rows[s.y]) <= s.x {
		s.rows[s.y] = append(s.rows[s.y], ' ')
	}
	s.rows[s.y][s.x] = char
	s.x++
	s.wrote++
}

func (s *screen) control(parameter string, final rune) {
	switch final {
	case 'A':
		up, err := strconv.Atoi(parameter)
		require.NoError(s.t, err)
		s.y -= up
		require.GreaterOrEqual(s.t, s.y, 0, "the cursor leaves the screen")
	case 'K':
		if s.y < len(s.rows) {
			at := min(s.x, s.columns-1) // a full line leaves the cursor on its last character
			s.rows[s.y] = s.rows[s.y][:min(len(s.rows[s.y]), at)]
		}
	case 'J':
		s.rows = s.rows[:min(len(s.rows), s.y)]
	case 'h', 'l', 'm':
	default:
		s.t.Errorf("the screen does not know %q", final)
	}
}

func (s *screen) String() string {
	var text strings.Builder
	for _, row := range s.rows {
		text.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return text.String()
}

func (s *screen) size() (int, int) { return s.columns, s.lines }

// gateResults are results of two checks of nodes and one of the cluster; the nodes from ready on are not Ready.
func gateResults(nodes, ready int) []health.Result {
	var results []health.Result
	for i := range nodes {
		results = append(results, health.Pass(fmt.Sprintf("infra-node-%d", i+1)))
		results[i].Check = "the Talos API answers on every node"
	}
	etcd := health.Pass("")
	etcd.Check = "etcd has exactly the declared members, none a learner"
	results = append(results, etcd)
	for i := range nodes {
		result := health.Pass(fmt.Sprintf("infra-node-%d", i+1))
		if i >= ready {
			result = health.Fail(result.Subject, "Ready is False: NetworkPluginNotReady")
		}
		result.Check = "every declared node is Ready"
		results = append(results, result)
	}
	return results
}

func TestLive_DrawsConditionsByNodesInTheSamePlace(t *testing.T) {
	s := &screen{t: t, columns: 60, lines: 24}
	_, _ = s.Write([]byte("$ slipway-probe gate\n"))
	live := &health.Live{To: s, Size: s.size, Title: "gate of infra", Colour: true}
	live.Seen(0, gateResults(3, 0))
	live.Heartbeat(5*time.Second, 595*time.Second, gateResults(3, 2))
	assert.Equal(t, `$ slipway-probe gate
gate of infra: 5s, 2 of 3 conditions hold, 9m55s left
                                                      1 2 3
✓ the Talos API answers on every node                 ✓ ✓ ✓
✓ etcd has exactly the declared members, none a lea…
✗ every declared node is Ready                        ✓ ✓ ✗
  infra-node-3: every declared node is Ready: Ready is Fal…
`, s.String())
	live.End(health.End{Results: gateResults(3, 3), Waited: 7 * time.Second})
	assert.Equal(t, `$ slipway-probe gate
gate of infra: 7s, 3 of 3 conditions hold
                                                      1 2 3
✓ the Talos API answers on every node                 ✓ ✓ ✓
✓ etcd has exactly the declared members, none a lea…
✓ every declared node is Ready                        ✓ ✓ ✓
`, s.String(), "the last state stays, and nothing of the one before it")
}

func TestLive_DrawsAtMostTenFramesASecond(t *testing.T) {
	s := &screen{t: t, columns: 80, lines: 24}
	live := &health.Live{To: s, Size: s.size, Title: "gate of infra"}
	live.Seen(0, gateResults(3, 0))
	once := s.wrote
	for i := range 100 {
		live.Seen(time.Duration(i)*time.Millisecond, gateResults(3, i%4))
	}
	assert.Equal(t, once, s.wrote)
	live.Seen(time.Second, gateResults(3, 3))
	assert.Greater(t, s.wrote, once)
}

func TestLive_FitsInTerminalsOfEverySize(t *testing.T) {
	for _, nodes := range []int{1, 5, 30, 100} {
		for _, columns := range []int{20, 50, 80, 200} {
			for _, lines := range []int{4, 10, 50} {
				s := &screen{t: t, columns: columns, lines: lines}
				live := &health.Live{To: s, Size: s.size, Title: "gate of infra"}
				for i := range 5 {
					live.Heartbeat(time.Duration(i)*time.Second, time.Minute, gateResults(nodes, i%nodes))
				}
				assert.Zero(t, s.scrolled, "%d nodes on %d × %d", nodes, columns, lines)
				assert.True(t, strings.HasPrefix(s.String(), "gate of infra: 4s"), s.String())
			}
		}
	}
}

func TestLive_ManyNodesAreMarksWithoutNamesOrNumbers(t *testing.T) {
	s := &screen{t: t, columns: 80, lines: 24}
	live := &health.Live{To: s, Size: s.size, Title: "gate of infra"}
	live.Seen(0, gateResults(30, 29))
	assert.Contains(t, s.String(), "(30 nodes, infra-node-1 to infra-node-30)")
	assert.Contains(t, s.String(), strings.Repeat("✓", 29)+"✗\n")
	s = &screen{t: t, columns: 80, lines: 24}
	live = &health.Live{To: s, Size: s.size, Title: "gate of infra"}
	live.Seen(0, gateResults(100, 99))
	assert.Contains(t, s.String(), "✗ every declared node is Ready (99 of 100)\n")
}

func TestLive_ANarrowerTerminalLeavesNoRestOfTheFormerFrame(t *testing.T) {
	s := &screen{t: t, columns: 80, lines: 24}
	live := &health.Live{To: s, Size: s.size, Title: "gate of infra"}
	live.Seen(0, gateResults(3, 0))
	rows := len(s.rows)
	s.rows = append(s.rows, make([][]rune, 4)...) // the terminal has wrapped four lines of 80 into 60
	s.y += 4
	s.columns = 60
	live.Seen(time.Second, gateResults(3, 0))
	assert.LessOrEqual(t, len(s.rows), rows)
	assert.Zero(t, s.scrolled)
}
