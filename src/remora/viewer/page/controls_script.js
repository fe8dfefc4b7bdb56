// The controls beside the scene: labels on one line, sliders that are filled from zero, and units
// in the fields of their values.
document.head.appendChild(document.createElement("style")).textContent = `
canvas{opacity:1!important} /* viser fades it in whenever the lights change */
label[for]:not([class]){display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
div:has(>div>p>label[for]:not([class])):has(.mantine-Checkbox-root){flex-direction:row-reverse;
  justify-content:flex-end;gap:.6em}
div:has(>p>label[for]:not([class])):has(+div .mantine-Checkbox-root){width:auto!important;
  flex:1 1 auto;min-width:0}
div:has(>p>label[for]:not([class]))+div:has(.mantine-Checkbox-root){flex-grow:0!important;
  line-height:0}
div:has(>p>label[for]:not([class])):has(+div [data-remora-unit]){width:8.6em!important}
[data-remora-unit]{width:4.4rem!important;position:relative;font-variant-numeric:tabular-nums}
[data-remora-unit] input{text-align:right;padding-right:1.55em!important}
[data-remora-unit="m"] input{padding-right:1.8em!important}
[data-remora-unit]::after{content:attr(data-remora-unit);position:absolute;right:.6em;top:50%;
  transform:translateY(-50%);font-size:12px;opacity:.6;pointer-events:none}
[data-remora-zero] .mantine-Slider-bar{width:var(--remora-width)!important;
  left:var(--remora-left)!important;inset-inline-start:var(--remora-left)!important}
[data-remora-zero] .mantine-Slider-mark[data-filled]{background:var(--mantine-color-body)!important;
  border-color:var(--slider-track-bg,#8886)!important}
[data-remora-line]{cursor:pointer}
[data-remora-line]:hover{text-decoration:underline}
@media (max-height:760px){.mantine-Slider-markLabel{display:none}
  .mantine-Slider-root{align-self:center}}`;

const fillSliders = () => {
  for (const thumb of document.querySelectorAll(".mantine-Slider-thumb")) {
    const [low, high, at] = ["min", "max", "now"].map((k) => +thumb.getAttribute(`aria-value${k}`));
    const slider = thumb.closest(".mantine-Slider-root");
    if (!slider || low >= 0 || slider.remoraAt === at) continue;
    slider.remoraAt = at;
    const origin = Math.min(0, high); // zero, or the end next to it
    const part = (x) => (100 * x) / (high - low);
    slider.setAttribute("data-remora-zero", part(origin - low).toFixed(3));
    slider.style.setProperty("--remora-left", `${part(Math.min(at, origin) - low).toFixed(3)}%`);
    slider.style.setProperty("--remora-width", `${part(Math.abs(at - origin)).toFixed(3)}%`);
  }
};
const showUnits = () => {
  for (const label of document.querySelectorAll("label[for]:not([class]):not([title])")) {
    label.title = label.textContent;
  }
  const units = JSON.parse(told("units") || "{}");
  for (const [uuid, unit] of Object.entries(units)) {
    const slider = document.getElementById(uuid);
    const field = slider && slider.parentElement.querySelector(".mantine-NumberInput-root");
    if (field && field.dataset.remoraUnit !== unit) field.dataset.remoraUnit = unit;
  }
};
