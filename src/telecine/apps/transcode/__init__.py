"""The transcode app: any video to adaptive streams, exact to the frame, resumed at the segment."""
