// What viser does not do: overlays are drawn through bodies.
(() => {
  "use strict";
  const OVERLAY = "/world/overlay/";
  const through = (object) => {
    const materials = Array.isArray(object.material) ? object.material : [object.material];
    for (const material of materials) {
      if (!material || material.depthTest === false) continue;
      material.depthTest = false;
      material.transparent = true;
      material.needsUpdate = true;
    }
    object.renderOrder = 900;
  };
  const tick = () => {
    const viser = window.__viserMutable;
    if (viser) {
      for (const name in viser.nodeRefFromName) {
        const node = viser.nodeRefFromName[name];
        if (node && name.startsWith(OVERLAY)) {
          node.traverse((object) => object.material && through(object));
        }
      }
    }
    setTimeout(tick, 250);
  };
  tick();
})();
