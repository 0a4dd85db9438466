import os, re, time
from pathlib import Path
import pytest
from playwright.sync_api import expect
from tests.browser import dashboard_page as dashboard
from tests.browser.conftest import *  # noqa
from tests.browser.servers import REPO
NOTEBOOK = REPO / "notebooks" / "dashboards" / "overview.ipynb"
OUT=Path('/tmp/h3/shots')

def test_look(browser, start_voila):
    server = start_voila(NOTEBOOK, recording=str(REPO/"sample_traces"/"case_study"/"before"))
    for theme in ("light","dark"):
        ctx=browser.new_context(viewport={"width":1280,"height":900}, reduced_motion="reduce")
        page=ctx.new_page(); page.set_default_timeout(30000)
        errs=[]
        page.on("console", lambda m: errs.append(m.text) if m.type=="error" else None)
        dashboard.open_dashboard(page, server, theme=theme)
        if theme=="light":
            html=page.evaluate("document.querySelector('.maiprof-ranking thead').outerHTML")
            
            first=lambda: dashboard.rows(page).first.inner_text()[:80]
            print('A', first())
            page.locator(".maiprof-ranking .dt-scroll-head th .dt-column-title", has_text="Calls").click()
            time.sleep(1); print('B text', first())
            page.locator(".maiprof-ranking .dt-scroll-head th .dt-column-title", has_text="Calls").click()
            time.sleep(1); print('C arrow', first())
            b=page.locator(".maiprof-ranking .dt-scroll-head th").nth(2).bounding_box()
            page.mouse.click(b['x']+b['width']-3, b['y']+3); time.sleep(1); print('D cell', first())
        dashboard.fold_button(page).first.click()
        page.locator(".maiprof-folded > .jupyter-button").last.click()
        for d in page.locator(".maiprof-trust summary").all(): d.click()
        for d in page.locator(".maiprof-sources > details > summary").all(): d.click()
        time.sleep(2)
        page.set_viewport_size({"width":1280,"height":4600}); time.sleep(1.5)
        page.screenshot(path=OUT/f"look-{theme}.png")
        if theme=="dark":
            row=page.locator(".maiprof-clocks > .widget-hbox", has_text="gpu.csv")
            row.locator("input[type=text]").fill("+10 s"); row.get_by_role("button",name="Move").click()
            expect(page.locator(".maiprof-clocks").last).to_contain_text("by hand"); time.sleep(2)
            page.screenshot(path=OUT/"moved-dark.png")
        print(errs); ctx.close()
