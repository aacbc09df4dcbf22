"""An app for Telecine: one flow, one route, one command. Each is imported when it is used."""

from telecine.apps import App, AppFlow, imported

app = App(
    name="thumbnails",
    title="Small pictures of large ones",
    flows={
        "thumbnails": AppFlow(
            make=imported("telecine_thumbnails.flow:flow"),
            spec=imported("telecine_thumbnails.flow:ThumbnailSpec"),
            policy=imported("telecine_thumbnails.http:admins_only"),
        )
    },
    routers=imported("telecine_thumbnails.http:routers"),
    commands=imported("telecine_thumbnails.command:commands"),
)
