package picture

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireBrowser is the variable with which a machine says that it has a browser. Where it is set, a missing one is a failure.
const requireBrowser = "SLIPWAY_REQUIRE_BROWSER"

// browser returns a browser's command. Without one on this machine, the test is skipped, or fails if there must be one.
func browser(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing := "no browser to look at the pages with: none of " + strings.Join(names, ", ") + " is installed"
	if os.Getenv(requireBrowser) != "" {
		t.Fatal(missing + ", and " + requireBrowser + " is set")
	}
	t.Skip(missing + "; nothing looks at the pages")
	return ""
}

// look is what a browser tells of a page.
type look struct {
	width, needs int    // of the window and of the content, in pixels
	background   string // colour of the page
	text         string // colour of the text
}

var lookPattern = regexp.MustCompile(`<title>look: (\d+) (\d+) (rgb[^)]*\)) (rgb[^)]*\))</title>`)

// frame shows a page in a frame, because a browser has no window as narrow as a phone, and writes what it did into its own title.
const frame = `<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>waits</title></head>
<body><iframe style="border:0;width:%dpx;height:800px" srcdoc="%s"></iframe><script>
addEventListener("load", () => {
  const inner = frames[0], root = inner.document.documentElement, style = inner.getComputedStyle(inner.document.body)
  document.title = ["look:", inner.innerWidth, root.scrollWidth, style.backgroundColor, style.color].join(" ")
})
</script></body></html>`

// open opens a page in a browser, in a window of some width.
func open(t *testing.T, command, page string, width int, flags ...string) look {
	t.Helper()
	file := filepath.Join(t.TempDir(), "frame.html")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, frame, width, html.EscapeString(page)), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,900", "--dump-dom",
		"--user-data-dir=" + t.TempDir(),
	}, flags...)
	out, err := exec.CommandContext(ctx, command, append(args, "file://"+file)...).Output()
	require.NoError(t, err)
	found := lookPattern.FindStringSubmatch(string(out))
	require.NotNil(t, found, "the page was loaded")
	l := look{background: found[3], text: found[4]}
	_, err = fmt.Sscan(found[1]+" "+found[2], &l.width, &l.needs)
	require.NoError(t, err)
	return l
}

// A page that is wider than its window has to be pushed to and fro on a phone.
func TestPages_FitAPhoneAndADesk(t *testing.T) {
	command := browser(t)
	for name, page := range pages(t) {
		for _, width := range []int{390, 1280} {
			l := open(t, command, page, width)
			assert.Equal(t, width, l.width, name)
			assert.LessOrEqual(t, l.needs, l.width, name)
		}
	}
	wide := strings.Replace(pages(t)["up.html"], "<main>", `<main><div style="width:600px">wide</div>`, 1)
	assert.Greater(t, open(t, command, wide, 390).needs, 390, "the test notices a page that is too wide")
}

func TestPages_FollowTheColourScheme(t *testing.T) {
	command, page := browser(t), pages(t)["up.html"]
	light := open(t, command, page, 390, "--blink-settings=preferredColorScheme=1")
	dark := open(t, command, page, 390, "--blink-settings=preferredColorScheme=0")
	assert.Equal(t, "rgb(255, 255, 255)", light.background)
	assert.Equal(t, "rgb(15, 20, 26)", dark.background)
	assert.NotEqual(t, light.text, dark.text)
}
