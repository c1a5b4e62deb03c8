"use strict";
vegaEmbed("#chart", JSON.parse(document.getElementById("chart-data").textContent), { actions: false, ast: true, renderer: "svg" });
