"""Compares renderings of the page with small grey pictures of each part in tests/web/golden.

A picture shows the whole page reduced to an eighth, so each pixel is the mean of 64. A height that differs by more than 1/25 is another layout.
Two pictures are compared by tiles of 8 x 8 pixels. Other hinting, smoothing or spacing changes a tile's mean little; a part that is missing,
moved, or in another colour changes whole tiles. Other fonts break lines elsewhere, so the comparison needs the same fonts.
"""

import base64
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"
MOST_BYTES = 300_000
MEAN, TILE = 1.5, 25.0  # of 255: limits for the mean of all tiles and for the worst tile
VIEWS = {"toy": "#part=toy&cuts=4,2&divide=1&at=2", "start": "#part=toy", "lessons": "#part=lessons&lesson=12&step=3", "cards": "#part=lessons&lesson=6&step=2",
         "list": "#part=lessons", "chain": "#part=chain", "noise": "#part=noise&size=8&thrown=40", "presenting": "#part=lessons&lesson=5&step=3&present=1"}

REDUCED = """
const [shot, done] = arguments, image = new Image();
image.onload = () => {
  let from = image, width = image.width, height = image.height;
  for (let halvings = 0; halvings < 3; ++halvings) {
    const half = document.createElement("canvas"), draw = half.getContext("2d");
    [half.width, half.height] = [width >>= 1, height >>= 1];
    draw.filter = halvings === 0 ? "grayscale(1)" : "none";
    draw.drawImage(from, 0, 0, width, height);
    from = half;
  }
  done(from.toDataURL("image/png").split(",")[1]);
};
image.src = "data:image/png;base64," + shot;"""

DIFFERENCE = """
const done = arguments[2], dots = (png) => new Promise((good) => {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas"), draw = canvas.getContext("2d");
    [canvas.width, canvas.height] = [image.width, image.height];
    draw.drawImage(image, 0, 0);
    good(draw.getImageData(0, 0, image.width, image.height));
  };
  image.src = "data:image/png;base64," + png;
});
Promise.all([dots(arguments[0]), dots(arguments[1])]).then(([a, b]) => {
  if (a.width !== b.width || Math.abs(a.height - b.height) > 0.04 * a.height) return done([255, 255]);
  let sum = 0, worst = 0, tiles = 0;
  for (let y = 0; y + 8 <= Math.min(a.height, b.height); y += 8)
    for (let x = 0; x + 8 <= a.width; x += 8) {
      let by = 0;
      for (let i = 0; i < 64; ++i) { const at = 4 * ((y + (i >> 3)) * a.width + x + (i & 7)); by += a.data[at] - b.data[at]; }
      by = Math.abs(by) / 64;
      sum += by; ++tiles;
      worst = Math.max(worst, by);
    }
  done([sum / tiles, worst]);
});"""


def reduced(page):
    """Returns the whole page as a small PNG."""
    page.js("document.querySelector('footer').style.visibility = 'hidden'")  # the footer contains a hash of the sources
    width, height = page.js("return [innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]")
    shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True,
                                                                  "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
    return base64.b64decode(page.driver.execute_async_script(REDUCED, shot["data"]))


def difference(page, one, other):
    """Returns the mean difference over all tiles, and the worst tile's."""
    return page.driver.execute_async_script(DIFFERENCE, *(base64.b64encode(png).decode() for png in (one, other)))


def fonts(page):
    """Returns the width of a line in each of the page's two fonts, which identifies the fonts."""
    return page.js("""const draw = document.createElement("canvas").getContext("2d");
        return ["system-ui, sans-serif", getComputedStyle(document.querySelector(".number, pre, input")).fontFamily].map((font) => {
          draw.font = `100px ${font}`;
          return Math.round(draw.measureText("Gradients that add up: 0123456789").width); })""")


def same_fonts(page):
    kept = map(int, (FOLDER / "fonts.txt").read_text(encoding="utf-8").split())
    return all(abs(here - there) <= 0.01 * there for here, there in zip(fonts(page), kept, strict=True))


def alike(mean, tile):
    return mean <= MEAN and tile <= TILE
