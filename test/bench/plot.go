package main

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot" // maintained and still released; of the others, go-chart and its fork vicanso/go-charts rest since 2024
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A series is a contestant's or a measurement's points in a plot.
type series struct {
	name   string
	points ratios
}

// ratios are points with their quartiles.
type ratios []struct {
	ratio
	place float64 // on the Y axis
}

func (r ratios) Len() int                    { return len(r) }
func (r ratios) XY(i int) (x, y float64)     { return r[i].median, r[i].place }
func (r ratios) XError(i int) (l, h float64) { return r[i].median - r[i].low, r[i].high - r[i].median }

// plot draws the ratios of a table, if the group wants that and there are any.
func (t *table) plot(g group) ([]byte, error) {
	if !slices.Contains(g.plots, t.title) {
		return nil, nil
	}
	places, all := t.series()
	points := 0
	for _, s := range all {
		points += len(s.points)
	}
	if points == 0 {
		return nil, nil
	}
	p := plot.New()
	p.Title.Text = g.title + ": " + strings.ToLower(t.title)
	p.X.Label.Text = "time, as a multiple of the first contestant's (left is faster)"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks(ticks())
	p.NominalY(places...)
	if err := draws(p, all); err != nil {
		return nil, err
	}
	low, high := p.X.Min, p.X.Max
	p.X.Min, p.X.Max = min(low*0.9, 0.7), max(high*1.1, 1.5)
	p.Y.Min, p.Y.Max = -0.6, float64(len(places))-0.4+0.55*float64(len(all))
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: float64(len(places)) - 0.4}})
	if err != nil {
		return nil, err
	}
	one.Color = color.Gray{160}
	p.Add(one)
	p.Legend.Top, p.Legend.Left = true, true // a font that is wider then grows into empty space
	return svg(p, vg.Length(2.2+0.22*(float64(len(places))+0.6*float64(len(all))))*vg.Inch)
}

// series returns the names on the Y axis, from its lower end, and what is drawn for each.
// As in the table, many measurements are at the axis, and few are drawn in colours.
func (t *table) series() (places []string, all []series) {
	labels, others := t.labels(), t.names[1:] // the first is 1
	colours, axis := labels, others
	swapped := len(t.measured) > 8
	if swapped {
		colours, axis = others, labels
	}
	for i := len(axis) - 1; i >= 0; i-- {
		places = append(places, axis[i])
	}
	for i, colour := range colours {
		s := series{name: colour}
		for j := range axis {
			place, contestant := i, j
			if swapped {
				place, contestant = j, i
			}
			name, m := others[contestant], t.measured[place]
			first, r := m.get(m.results[0].name), m.get(name)
			if first == nil || r == nil {
				continue
			}
			found, ok := r.to(first, unitTime)
			if !ok || found.low <= 0 {
				continue
			}
			// Those of one line stand a little apart.
			shift := 0.5 * (0.5 - (float64(i)+0.5)/float64(len(colours)))
			s.points = append(s.points, struct {
				ratio
				place float64
			}{found, float64(len(axis)-1-j) + shift})
		}
		all = append(all, s)
	}
	return places, all
}

// palette is Okabe and Ito's, which can be told apart without seeing all colours.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	color.RGBA{0x33, 0x33, 0x33, 0xff}, color.RGBA{0xb0, 0xa0, 0x00, 0xff},
}

var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}

// draws adds the points, with their quartiles and a legend.
func draws(p *plot.Plot, all []series) error {
	for i, s := range all {
		if len(s.points) == 0 {
			continue
		}
		points, err := plotter.NewScatter(s.points)
		if err != nil {
			return err
		}
		points.Color, points.Shape, points.Radius = palette[i%len(palette)], shapes[i%len(shapes)], vg.Points(2.5)
		bars, err := plotter.NewXErrorBars(s.points)
		if err != nil {
			return err
		}
		bars.Color, bars.CapWidth = points.Color, vg.Points(3)
		p.Add(bars, points)
		p.Legend.Add(s.name, points)
	}
	return nil
}

// ticks are where a logarithmic axis is easy to read.
func ticks() []plot.Tick {
	var all []plot.Tick
	for _, decade := range []float64{0.001, 0.01, 0.1, 1, 10, 100, 1_000, 10_000} {
		for _, n := range []float64{1, 2, 5} {
			all = append(all, plot.Tick{Value: n * decade, Label: fmt.Sprintf("%g", n*decade)})
		}
	}
	return all
}

// svg returns the picture, in fonts that browsers have.
func svg(p *plot.Plot, height vg.Length) ([]byte, error) {
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Typeface, f.Variant = sans.Typeface, sans.Variant
	}
	canvas := vgsvg.New(8*vg.Inch, height)
	canvas.Push()
	canvas.SetColor(color.White)
	background := vg.Path{}
	background.Move(vg.Point{})
	background.Line(vg.Point{X: 8 * vg.Inch})
	background.Line(vg.Point{X: 8 * vg.Inch, Y: height})
	background.Line(vg.Point{Y: height})
	background.Close()
	canvas.Fill(background)
	canvas.Pop()
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}
